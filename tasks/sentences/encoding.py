"""Encodes the texts that a store lacks: here where they are few, else in a process a core.

Processes are niced, so that they take only the cores that nothing else wants, and have one thread each. A
piece is kept as soon as it is encoded: what a killed night has encoded, the next one need not.
"""

import functools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from storage.artifacts import Progress
from storage.sentences import SentenceStore, text_keys
from tasks.pool import cores, open_pool
from tasks.sentences import SentenceStrategy

PIECE = 2048  # texts: about a second of titles, five of descriptions
PROCESSES_FROM = (
    200_000  # characters, some three seconds; below, starting processes costs more than they save
)
NICE = 10


def encode_new(
    store: SentenceStore, strategy: SentenceStrategy, batches: Callable[[], Iterable[Sequence[str]]]
) -> Iterator[Progress]:
    """Encodes and keeps what the store lacks of some texts; yields before the first piece and after each.

    Args:
        store: Of the strategy's encoder.
        strategy: Opened here or in the processes.
        batches: Gives the texts, in batches of any size, twice: to count them, and to encode them.
    """
    parts = [(text_keys(batch), np.array([len(text) for text in batch], np.int64)) for batch in batches()]
    keys = np.concatenate([np.zeros(0, "<u8"), *(own for own, _ in parts)])
    lengths = np.concatenate([np.zeros(0, np.int64), *(own for _, own in parts)])
    new = np.zeros(len(keys), dtype=bool)
    new[np.unique(keys, return_index=True)[1]] = True
    new &= ~store.has(keys)
    total, done = int(new.sum()), 0
    if not total:
        return
    few = lengths[new].sum() < PROCESSES_FROM
    workers = 0 if few or cores() == 1 else min(cores(), -(-total // PIECE))
    where = f" in {workers} processes" if workers else ""
    yield Progress(0, total, note=f"{total} new texts to encode{where}")
    waiting: deque = deque()
    with open_pool("processes", workers) as submit:
        for texts in _pieces(batches(), new):
            task = submit(_encode_aside, strategy, texts) if workers else submit(_encode, strategy, texts)
            waiting.append((texts, task))
            while len(waiting) > 2 * workers:
                done += _keep(store, *waiting.popleft())
                yield Progress(done, total, note=f"{done} of {total} new texts encoded")
        while waiting:
            done += _keep(store, *waiting.popleft())
            yield Progress(done, total, note=f"{done} of {total} new texts encoded")


def _pieces(batches: Iterable[Sequence[str]], new: np.ndarray) -> Iterator[list[str]]:
    """The new texts, ``PIECE`` at a time, whatever the size of the batches."""
    begin, piece = 0, []
    for batch in batches:
        for number in np.flatnonzero(new[begin : begin + len(batch)]).tolist():
            piece.append(batch[number])
            if len(piece) == PIECE:
                yield piece
                piece = []
        begin += len(batch)
    if piece:
        yield piece


def _keep(store: SentenceStore, texts: list[str], encoded) -> int:
    store.add(text_keys(texts), encoded.result())
    return len(texts)


def _encode(strategy: SentenceStrategy, texts: list[str]) -> np.ndarray:
    encoder = strategy.open()
    assert encoder is not None
    return encoder.encode(texts).astype(np.float16)


def _encode_aside(strategy: SentenceStrategy, texts: list[str]) -> np.ndarray:
    _step_aside()
    return _encode(strategy, texts)


@functools.cache
def _step_aside() -> None:
    from threadpoolctl import threadpool_limits

    os.nice(NICE)
    threadpool_limits(1)  # of libraries that are there
    os.environ["OMP_NUM_THREADS"] = "1"  # of those that an encoder brings
