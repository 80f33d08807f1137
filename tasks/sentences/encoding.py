"""Encodes texts whose vectors are not stored yet, by a sentence encoder in one or several processes.

Few texts are encoded in this process. Many texts are encoded in one process per core, or by Dask or Ray on
several machines. A worker process has one thread. Worker processes on this machine have a low priority, so
that they use only idle cores. Workers read the texts from a file in pieces, and store the vectors of a piece
as soon as it is encoded. Therefore, the next run after an interruption encodes only the remaining pieces.
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

PIECE_TEXTS = 2048  # encoding a piece takes about .7 seconds for titles, three seconds for descriptions
MIN_PARALLEL_CHARACTERS = 300_000  # about three seconds of work; for less, starting processes takes longer
NICENESS = 10  # niceness of worker processes on this machine
TEXTS = pa.schema([("text", pa.string())])


def encode_new(
    store: SentenceStore,
    strategy: SentenceStrategy,
    batches: Callable[[], Iterable[Sequence[str]]],
    pool: PoolSettings | None = None,
) -> Iterator[Progress]:
    """Encodes the texts whose vectors are not stored yet, and stores their vectors. Yields the progress.

    Args:
        store: Stored vectors of this encoder.
        strategy: Encoder, which is opened in this process or in the workers.
        batches: Function that returns the texts in batches of any size. It is called twice: to find the new
            texts, and to encode them.
        pool: Processes or machines that encode the texts; None: processes on this machine.
    """
    pool = pool or PoolSettings()
    batch_arrays = [(np.zeros(0, "<u8"), np.zeros(0, np.int64))]
    batch_arrays += [(text_keys(batch), np.array([*map(len, batch)], np.int64)) for batch in batches()]
    keys, lengths = (np.concatenate(arrays) for arrays in zip(*batch_arrays, strict=True))
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
    text_file, first_segment, encoded = store.folder / f"texts-{os.getpid()}.tmp", store.next_number(), 0
    try:
        _write_texts(text_file, batches(), is_new)
        pieces = [
            (strategy, text_file, piece, first_segment + piece, niceness) for piece in range(len(starts))
        ]
        for piece, segment in compute_pieces(pool, workers, _encode_piece, pieces):
            piece_keys = new_keys[starts[piece] :][:PIECE_TEXTS]
            store.register(segment, piece_keys)
            encoded += len(piece_keys)
            yield Progress(encoded, total, note=f"{encoded} of {total} new texts encoded")
    finally:
        text_file.unlink(missing_ok=True)


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
    strategy: SentenceStrategy, file: Path, piece: int, segment: int, niceness: int | None
) -> Path:
    """Encodes the texts of a row group and writes their vectors to the store as segment ``segment``.

    ``niceness`` is the niceness of the worker process; None: the piece is encoded in the process of the run.
    """
    if niceness is not None:
        _limit_worker(niceness)
    texts = pq.ParquetFile(file).read_row_group(piece)["text"].to_pylist()
    encoder = strategy.open()
    assert encoder is not None
    vectors = encoder.encode(texts).astype(np.float16)
    return write_segment(file.parent, segment, text_keys(texts), vectors)


@functools.cache
def _limit_worker(niceness: int) -> None:
    """Lowers the priority of a worker process, and limits its libraries to one thread."""
    from threadpoolctl import threadpool_limits

    os.nice(niceness)
    threadpool_limits(1)  # for libraries that are already loaded
    os.environ["OMP_NUM_THREADS"] = "1"  # for libraries that the encoder loads later
