"""Searches the nearest titles of each title in a pool: processes, or Dask or Ray on several machines.

The calling process builds the approximate index and writes it to a file, which workers map into memory. A
piece is a batch of titles, as in ``Approximate.nearest_to_each``, so that the result is the same. A worker
reads the vectors of the titles of a piece from the published array, which it also maps, and writes the
nearest titles to a file.
"""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from storage.arrays import open_array
from storage.artifacts import Progress
from storage.atomic import replaced_file
from storage.shapes import Float32, Int64
from tasks.neighbours.index import QUERIES_PER_BATCH, Approximate, search_batch
from tasks.neighbours.similarity import nonzero_rows
from tasks.pool import compute_pieces
from tasks.pool_settings import PoolSettings


def search_pieces(
    index: Approximate,
    vectors: Path,
    work: Path,
    pool: PoolSettings,
    ids: Int64[np.ndarray, "titles k"],
    cosines: Float32[np.ndarray, "titles k"],
) -> Iterator[Progress]:
    """Writes the result of ``index.nearest_to_each(k)`` to ``ids`` and ``cosines``, and yields progress.

    Args:
        index: Index of all titles.
        vectors: Published array (titles, dim) that contains the vectors of the index.
        work: Folder for the index and the results of pieces. All workers must have access to it.
        pool: Settings of the pool that searches the pieces.
        ids: Nearest titles of each title. The caller fills the array with -1.
        cosines: Cosines of ``ids``. The caller fills the array with 0.
    """
    import faiss  # pyright: ignore[reportMissingImports]

    rows = np.flatnonzero(nonzero_rows(index.vectors))
    np.save(work / "rows.npy", rows)
    faiss.write_index(index.inverted, str(work / "index.faiss"))
    bounds = [(start, start + QUERIES_PER_BATCH) for start in range(0, len(rows), QUERIES_PER_BATCH)]
    pieces = [(work, vectors, *piece_bounds, ids.shape[1]) for piece_bounds in bounds]
    workers = pool.count_workers(automatic=0)
    completed_pieces = compute_pieces(pool, min(workers, len(pieces)), _search_piece, pieces)
    for count, (piece, file) in enumerate(completed_pieces, 1):
        piece_rows = rows[slice(*bounds[piece])]
        with np.load(file) as nearest:
            width = nearest["ids"].shape[1]
            ids[piece_rows, :width], cosines[piece_rows, :width] = nearest["ids"], nearest["cosines"]
        file.unlink()
        yield Progress(count, len(pieces), note=f"{count} of {len(pieces)} pieces searched")


def _search_piece(work: Path, vectors: Path, start: int, stop: int, k: int) -> Path:
    """Writes the k nearest titles of each title in ``rows.npy[start:stop]`` to a file, which is returned."""
    rows = open_array(work, "rows")[start:stop]
    titles = open_array(vectors.parent, vectors.stem)
    ids, cosines = search_batch(_map_index(work / "index.faiss"), titles, titles, rows, k, True)
    file = work / f"nearest-{start:09}.npz"
    with replaced_file(file, durable=False) as new, new.open("wb") as handle:
        np.savez(handle, ids=ids, cosines=cosines)
    return file


@functools.lru_cache(1)
def _map_index(file: Path) -> Any:
    """Maps an index of faiss into memory; it searches with one thread."""
    import faiss  # pyright: ignore[reportMissingImports]

    faiss.omp_set_num_threads(1)
    index: Any = faiss.read_index(str(file), faiss.IO_FLAG_MMAP)
    # Prefetching reads a cell once per query that visits it, which doubles the CPU time for cached files.
    lists: Any = faiss.downcast_InvertedLists(index.invlists)
    lists.prefetch_nthread = 0
    return index
