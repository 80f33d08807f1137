"""Searches the nearest titles of each title in a pool: processes, or Dask or Ray on several machines.

This process builds the approximate index and writes it to a file, which workers map into memory. A piece is
a batch of titles, as in ``Approximate.nearest_to_each``, so the result is the same. A worker reads its titles
from the published vectors, which it maps, too, and publishes their nearest titles as a file.
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
        work: Folder for the index and the results of pieces. Workers must mount it.
        pool: Where pieces are searched.
        ids: Nearest titles of each title; -1 on entry.
        cosines: Their cosines; 0 on entry.
    """
    import faiss  # pyright: ignore[reportMissingImports]

    rows = np.flatnonzero(nonzero_rows(index.titles))
    np.save(work / "rows.npy", rows)
    faiss.write_index(index.inverted, str(work / "index.faiss"))
    bounds = [(start, start + QUERIES_PER_BATCH) for start in range(0, len(rows), QUERIES_PER_BATCH)]
    pieces = [(work, vectors, *piece_bounds, ids.shape[1]) for piece_bounds in bounds]
    workers = pool.count_workers(automatic=0)
    completed = compute_pieces(pool, min(workers, len(pieces)), _search_piece, pieces)
    for step, (piece, file) in enumerate(completed, 1):
        part = rows[slice(*bounds[piece])]
        with np.load(file) as nearest:
            width = nearest["ids"].shape[1]
            ids[part, :width], cosines[part, :width] = nearest["ids"], nearest["cosines"]
        file.unlink()
        yield Progress(step, len(pieces), note=f"{step} of {len(pieces)} pieces searched")


def _search_piece(work: Path, vectors: Path, start: int, stop: int, k: int) -> Path:
    """Searches the nearest titles of the titles ``rows[start:stop]`` and writes them to a file."""
    rows = open_array(work, "rows")[start:stop]
    titles = open_array(vectors.parent, vectors.stem)
    ids, cosines = search_batch(_map_index(work / "index.faiss"), titles, titles, rows, k, True)
    file = work / f"nearest-{start:09}.npz"
    with replaced_file(file, durable=False) as new, new.open("wb") as handle:
        np.savez(handle, ids=ids, cosines=cosines)
    return file


@functools.lru_cache(1)
def _map_index(file: Path) -> Any:
    import faiss  # pyright: ignore[reportMissingImports]

    faiss.omp_set_num_threads(1)
    index: Any = faiss.read_index(str(file), faiss.IO_FLAG_MMAP)
    # Prefetching reads a cell for each query that probes it, which doubles the CPU time of cached files.
    lists: Any = faiss.downcast_InvertedLists(index.invlists)
    lists.prefetch_nthread = 0
    return index
