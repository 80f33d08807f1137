"""Encodes texts whose vectors are not stored yet, by a sentence encoder in one or several processes.

Few texts are encoded in this process, many in one process per core, or by Dask or Ray on several machines.
Worker processes have one thread; those of this machine have a low priority, so that they use only idle cores.
Workers read the texts from one file, and each adds its pieces to the store as soon as they are encoded, so
that a run after an interruption continues where the last one ended.
"""

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.artifacts import Progress
from storage.cores import cores
from storage.sentences import SentenceStore, text_keys, write_segment
from tasks.pool import compute_pieces
from tasks.pool_settings import AUTOMATIC, PoolSettings
from tasks.sentences import SentenceStrategy

PIECE_TEXTS = 2048  # encoding takes about .7 seconds for titles, three seconds for descriptions
MIN_PARALLEL_CHARACTERS = 300_000  # about three seconds of work; for less, starting processes takes longer
NICENESS = 10  # of worker processes on this machine
TEXTS = pa.schema([("text", pa.string())])


def encode_new(
    store: SentenceStore,
    strategy: SentenceStrategy,
    batches: Callable[[], Iterable[Sequence[str]]],
    pool: PoolSettings | None = None,
) -> Iterator[Progress]:
    """Encodes the texts whose vectors are not stored yet, stores them, and yields progress.

    Args:
        store: Stored vectors of this encoder.
        strategy: Encoder, opened in this process or in the workers.
        batches: Returns the texts in batches of any size; called twice, to count and to encode them.
        pool: Where pieces of the texts are encoded; None: in processes on this machine.
    """
    pool = pool or PoolSettings()
    parts = [(text_keys(batch), np.array([len(text) for text in batch], np.int64)) for batch in batches()]
    keys = np.concatenate([np.zeros(0, "<u8"), *(part for part, _ in parts)])
    lengths = np.concatenate([np.zeros(0, np.int64), *(part for _, part in parts)])
    is_new = np.zeros(len(keys), dtype=bool)
    is_new[np.unique(keys, return_index=True)[1]] = True
    is_new &= ~store.has(keys)
    new_keys = keys[is_new]
    if not (total := len(new_keys)):
        return
    if lengths[is_new].sum() < MIN_PARALLEL_CHARACTERS and pool.workers == AUTOMATIC:
        pool = PoolSettings(workers=0)
    starts = range(0, total, PIECE_TEXTS)
    workers = min(pool.count_workers(automatic=cores() if cores() > 1 else 0), len(starts))
    niceness = 0 if pool.pool_address else NICENESS
    if pool.pool != "processes":
        location = f" by {pool.pool}"
    elif workers:
        location = f" in {workers} processes"
    else:
        location, niceness = "", None
    yield Progress(0, total, note=f"{total} new texts to encode{location}")
    texts, first, encoded = store.folder / f"texts-{os.getpid()}.tmp", store.next_number(), 0
    try:
        _write_texts(texts, batches(), is_new)
        pieces = [(strategy, texts, piece, first + piece, niceness) for piece in range(len(starts))]
        for piece, segment in compute_pieces(pool, workers, _encode_piece, pieces):
            piece_keys = new_keys[starts[piece] :][:PIECE_TEXTS]
            store.register(segment, piece_keys)
            encoded += len(piece_keys)
            yield Progress(encoded, total, note=f"{encoded} of {total} new texts encoded")
    finally:
        texts.unlink(missing_ok=True)


def _write_texts(file: Path, batches: Iterable[Sequence[str]], is_new: np.ndarray) -> None:
    """Writes the texts marked in ``is_new``, with a row group for each piece of PIECE_TEXTS."""
    begin, piece = 0, []
    with pq.ParquetWriter(file, TEXTS) as writer:
        for batch in batches:
            piece += [batch[number] for number in np.flatnonzero(is_new[begin : begin + len(batch)]).tolist()]
            begin += len(batch)
            while len(piece) >= PIECE_TEXTS or (piece and begin == len(is_new)):
                writer.write_table(pa.table([piece[:PIECE_TEXTS]], TEXTS))
                piece = piece[PIECE_TEXTS:]


def _encode_piece(
    strategy: SentenceStrategy, file: Path, piece: int, number: int, niceness: int | None
) -> Path:
    """Encodes the texts of a row group and writes their vectors as the segment ``number`` of the store.

    ``niceness`` is that of a worker, or None in the process of the run.
    """
    if niceness is not None:
        _limit_worker(niceness)
    texts = pq.ParquetFile(file).read_row_group(piece)["text"].to_pylist()
    encoder = strategy.open()
    assert encoder is not None
    vectors = encoder.encode(texts).astype(np.float16)
    return write_segment(file.parent, number, text_keys(texts), vectors)


@functools.cache
def _limit_worker(niceness: int) -> None:
    from threadpoolctl import threadpool_limits

    os.nice(niceness)
    threadpool_limits(1)  # of libraries that are already loaded
    os.environ["OMP_NUM_THREADS"] = "1"  # of libraries that the encoder loads later
