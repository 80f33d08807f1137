"""Encodes texts whose vectors are not stored yet, by a sentence encoder in one or several processes.

Few texts are encoded in this process, many in one process per core. Worker processes have one thread and a
low priority, so that they use only idle cores. Each piece is stored as soon as it is encoded, so that a run
that was interrupted resumes where it ended.
"""

import functools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from storage.artifacts import Progress
from storage.cores import cores
from storage.sentences import SentenceStore, text_keys
from tasks.pool import open_pool
from tasks.sentences import SentenceStrategy

PIECE_TEXTS = 2048  # encoding takes about .7 seconds for titles, three seconds for descriptions
MIN_PARALLEL_CHARACTERS = 300_000  # about three seconds of work; for less, starting processes takes longer
NICENESS = 10  # of worker processes


def encode_new(
    store: SentenceStore, strategy: SentenceStrategy, batches: Callable[[], Iterable[Sequence[str]]]
) -> Iterator[Progress]:
    """Encodes the texts whose vectors are not stored yet, stores them, and yields progress.

    Args:
        store: Store of the encoder of the strategy.
        strategy: Encoder, opened in this process or in the workers.
        batches: Returns the texts in batches of any size; called twice, to count and to encode them.
    """
    parts = [(text_keys(batch), np.array([len(text) for text in batch], np.int64)) for batch in batches()]
    keys = np.concatenate([np.zeros(0, "<u8"), *(part for part, _ in parts)])
    lengths = np.concatenate([np.zeros(0, np.int64), *(part for _, part in parts)])
    is_new = np.zeros(len(keys), dtype=bool)
    is_new[np.unique(keys, return_index=True)[1]] = True
    is_new &= ~store.has(keys)
    total, encoded = int(is_new.sum()), 0
    if not total:
        return
    is_small = lengths[is_new].sum() < MIN_PARALLEL_CHARACTERS
    workers = 0 if is_small or cores() == 1 else min(cores(), -(-total // PIECE_TEXTS))
    location = f" in {workers} processes" if workers else ""
    yield Progress(0, total, note=f"{total} new texts to encode{location}")
    pending_pieces: deque = deque()
    with open_pool("processes", workers) as submit:
        for texts in _pieces(batches(), is_new):
            task = submit(_encode_in_worker, strategy, texts) if workers else submit(_encode, strategy, texts)
            pending_pieces.append((texts, task))
            while len(pending_pieces) > 2 * workers:
                encoded += _store_vectors(store, *pending_pieces.popleft())
                yield Progress(encoded, total, note=f"{encoded} of {total} new texts encoded")
        while pending_pieces:
            encoded += _store_vectors(store, *pending_pieces.popleft())
            yield Progress(encoded, total, note=f"{encoded} of {total} new texts encoded")


def _pieces(batches: Iterable[Sequence[str]], is_new: np.ndarray) -> Iterator[list[str]]:
    """Yields the texts marked in ``is_new`` in pieces of PIECE_TEXTS, independent of the batch sizes."""
    begin, piece = 0, []
    for batch in batches:
        for number in np.flatnonzero(is_new[begin : begin + len(batch)]).tolist():
            piece.append(batch[number])
            if len(piece) == PIECE_TEXTS:
                yield piece
                piece = []
        begin += len(batch)
    if piece:
        yield piece


def _store_vectors(store: SentenceStore, texts: list[str], encoded) -> int:
    store.add(text_keys(texts), encoded.result())
    return len(texts)


def _encode(strategy: SentenceStrategy, texts: list[str]) -> np.ndarray:
    encoder = strategy.open()
    assert encoder is not None
    return encoder.encode(texts).astype(np.float16)


def _encode_in_worker(strategy: SentenceStrategy, texts: list[str]) -> np.ndarray:
    _limit_worker()
    return _encode(strategy, texts)


@functools.cache
def _limit_worker() -> None:
    from threadpoolctl import threadpool_limits

    os.nice(NICENESS)
    threadpool_limits(1)  # of libraries that are already loaded
    os.environ["OMP_NUM_THREADS"] = "1"  # of libraries that the encoder loads later
