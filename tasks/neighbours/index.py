"""Exact and approximate nearest-neighbour search with one interface.

``Exact`` compares a query with all titles. ``Approximate`` compares a query with the titles in the nearest
cells (the inverted file of faiss), and stores vectors as float16, which halves memory and time. Both classes
sort candidates by cosines in float64, so they return the same result unless ``Approximate`` misses a
neighbour.
"""

import importlib.util
import logging
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from storage.arrays import row_blocks
from storage.cores import cores
from tasks.form import configurable, setting
from tasks.neighbours.rescoring import empty_neighbours, order_candidates
from tasks.neighbours.similarity import EXTRA_CANDIDATES, nonzero_rows, select_rows, top_neighbours
from tasks.pool_settings import PoolSettings

QUERIES_PER_BATCH = 16_384
CELLS_PER_ROOT = 4  # number of cells divided by the square root of the number of titles
TRAINING_TITLES_PER_CELL = 40  # titles per cell in the training sample of k-means
TRAINING_PASSES = 10  # iterations of k-means
INSTALL_COMMAND = "`pip install faiss-cpu` (the extra `approximate` of GuideSpace)"


class IndexMissing(ImportError):
    """Error: the library for approximate search, faiss, is not installed."""


class Index(Protocol):
    """Interface of indexes of title vectors. Ids are int64 and cosines float32; nearest titles are first."""

    is_exact: ClassVar[bool]  # whether the index finds all nearest titles

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids and the cosines of the k nearest titles of each query, both (queries, k)."""
        ...

    def nearest_to_each(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids and the cosines of the k nearest other titles of each title, both (titles, k)."""
        ...


@configurable
class SearchSettings(PoolSettings):
    """Settings of the search for nearest titles: the method, and the workers of the stage neighbours."""

    method: Literal["auto", "exact", "approximate"] = setting(
        "auto",
        "exact compares all pairs of titles, approximate only those in the nearest cells (needs faiss-cpu), "
        "auto decides by the number of titles.",
    )
    exact_below: int = setting(
        1_000_000, "With auto, the search is approximate from this number of titles on.", ge=1
    )
    probes: int = setting(
        64,
        "Cells that an approximate search visits; more cells find more neighbours and take longer.",
        ge=1,
    )

    def open(self, vectors: np.ndarray) -> Index:
        """Builds an index of title vectors, float32 (titles, dim), unit norm or zero.

        Raises:
            IndexMissing: The method is approximate and faiss is not installed.
        """
        is_exact = self.is_exact(len(vectors))
        if not is_exact and self.method == "auto" and importlib.util.find_spec("faiss") is None:
            message = "%d titles are searched exactly, which is slow; install faiss: %s"
            logging.getLogger(__name__).warning(message, len(vectors), INSTALL_COMMAND)
            is_exact = True
        return Exact(vectors) if is_exact else Approximate(vectors, probes=self.probes)

    def is_exact(self, title_count: int) -> bool:
        """Returns whether these settings select the exact search for ``title_count`` titles."""
        return self.method == "exact" or (self.method == "auto" and title_count < self.exact_below)


AUTO = SearchSettings()


@dataclass
class Exact:
    """Exact index, which compares each query with all titles."""

    is_exact: ClassVar[bool] = True
    vectors: np.ndarray  # vectors of titles, float32 (titles, dim), unit norm or zero

    @cached_property
    def nonzero(self) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers of the nonzero vectors, and the nonzero vectors."""
        rows = np.flatnonzero(nonzero_rows(self.vectors))
        return rows, select_rows(self.vectors, rows)

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids and the cosines of the k nearest titles of each query, both (queries, k)."""
        rows, points = self.nonzero
        ids, cosines = top_neighbours(queries, points, k, checked=True)
        return np.append(rows, -1)[ids], cosines

    def nearest_to_each(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids and the cosines of the k nearest other titles of each title, both (titles, k)."""
        return top_neighbours(self.vectors, self.vectors, k, exclude_self=True)


class Approximate:
    """Approximate index: k-means divides titles into cells, and a query is compared with the nearest cells.

    Args:
        vectors: Vectors of titles, float32 (titles, dim), unit norm or zero.
        probes: Number of cells whose titles are compared with a query.

    Raises:
        IndexMissing: faiss is not installed.
    """

    is_exact: ClassVar[bool] = False

    def __init__(self, vectors: np.ndarray, *, probes: int = 64) -> None:
        try:
            import faiss  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise IndexMissing(
                f"the approximate search needs faiss, which is not installed: {INSTALL_COMMAND}, or set the "
                "search method to exact"
            ) from error
        faiss.omp_set_num_threads(cores())
        self.vectors, dim = vectors, vectors.shape[1]
        rows = np.flatnonzero(nonzero_rows(vectors))
        self.count = count = len(rows)
        self.cells = max(1, min(round(CELLS_PER_ROOT * math.sqrt(count)), count // TRAINING_TITLES_PER_CELL))
        cell_index, encode_residuals = faiss.IndexFlatIP(dim), False
        quantizer, metric = faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        self.inverted = faiss.IndexIVFScalarQuantizer(
            cell_index, dim, self.cells, quantizer, metric, encode_residuals
        )
        self.inverted.nprobe = probes
        self.inverted.cp.spherical, self.inverted.cp.niter = True, TRAINING_PASSES
        if count:
            sample = np.random.default_rng(0).permutation(count)[: TRAINING_TITLES_PER_CELL * self.cells]
            self.inverted.train(select_rows(vectors, rows[np.sort(sample)]))
            for start in range(0, count, QUERIES_PER_BATCH):  # in batches, to avoid a copy of all vectors
                block = rows[start : start + QUERIES_PER_BATCH]
                self.inverted.add_with_ids(np.ascontiguousarray(vectors[block], dtype=np.float32), block)

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids and the cosines of the k nearest titles of each query, both (queries, k)."""
        return self._search(queries, k)

    def nearest_to_each(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids and the cosines of the k nearest other titles of each title, both (titles, k)."""
        return self._search(self.vectors, k, exclude_self=True)

    def _search(
        self, queries: np.ndarray, k: int, exclude_self: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds the k nearest titles of each query.

        With ``exclude_self``, query i is title i, and a title is not its own neighbour.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        ids, cosines = empty_neighbours(len(queries), k)
        query_rows = np.flatnonzero(nonzero_rows(queries, "queries"))
        for start in range(0, len(query_rows) if self.count else 0, QUERIES_PER_BATCH):
            rows = query_rows[start : start + QUERIES_PER_BATCH]
            best_ids, best_cosines = search_batch(self.inverted, self.vectors, queries, rows, k, exclude_self)
            ids[rows, : best_ids.shape[1]] = best_ids
            cosines[rows, : best_ids.shape[1]] = best_cosines
        return ids, cosines


def search_batch(
    inverted: Any, vectors: np.ndarray, queries: np.ndarray, rows: np.ndarray, k: int, exclude_self: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the nearest titles of ``queries[rows]``.

    Args:
        inverted: Index of faiss that contains ``vectors``.
        vectors: Vectors of titles.
        queries: Vectors of queries.
        rows: Row numbers of the queries to search.
        k: Number of neighbours.
        exclude_self: Whether query i is title i, which is not its own neighbour.

    Returns:
        The ids, int64, and the cosines, float32, of the nearest titles, both (rows, at most k).
    """
    block = np.ascontiguousarray(queries[rows], dtype=np.float32)
    candidates = inverted.search(block, min(k + EXTRA_CANDIDATES + exclude_self, inverted.ntotal))[1]
    if exclude_self:
        candidates[candidates == rows[:, None]] = -1
    return order_candidates(block, vectors, k, candidates)


def sampled_recall(vectors: np.ndarray, ids: np.ndarray) -> float:
    """Measures, for a sample of titles, the recall of the approximate neighbours ``ids``, (titles, k)."""
    sample_ids, k = _draw_sample(vectors, 1_000), ids.shape[1]
    exact_ids = _nearest_ids(vectors[sample_ids], vectors, k + 1).tolist()
    exact_neighbours = [
        [neighbour for neighbour in row if neighbour not in (title, -1)][:k]
        for title, row in zip(sample_ids, exact_ids, strict=True)
    ]
    return _compute_recall(ids[sample_ids], exact_neighbours)


def query_recall(index: Index, vectors: np.ndarray, k: int) -> float:
    """Measures the recall of the k nearest titles that an index finds, with a sample of titles as queries."""
    queries = vectors[_draw_sample(vectors, 200)]
    exact_ids = _nearest_ids(queries, vectors, k).tolist()
    exact_neighbours = [[neighbour for neighbour in row if neighbour >= 0] for row in exact_ids]
    return _compute_recall(index.nearest(queries, k)[0], exact_neighbours)


def _nearest_ids(queries: np.ndarray, vectors: np.ndarray, k: int) -> np.ndarray:
    """Returns the ids that ``top_neighbours`` would find, block by block, to avoid a copy of all titles."""
    ids, cosines = empty_neighbours(len(queries), k)
    cosines -= 2
    for block in row_blocks(len(vectors)):
        block_ids, values = top_neighbours(queries, vectors[block], k)
        ids = np.hstack([ids, np.where(block_ids < 0, -1, block_ids + block.start)])
        cosines = np.hstack([cosines, np.where(block_ids < 0, -2, values)])
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
        ids, cosines = (np.take_along_axis(array, best, 1) for array in (ids, cosines))
    return ids


def _draw_sample(vectors: np.ndarray, count: int) -> np.ndarray:
    """Returns the row numbers of ``count`` random titles with nonzero vectors, ascending."""
    rows = np.flatnonzero(nonzero_rows(vectors))
    return np.sort(np.random.default_rng(0).permutation(rows)[:count])


def _compute_recall(ids: np.ndarray, exact_ids: list[list[int]]) -> float:
    """Returns the share of the exact neighbours that ``ids``, (titles, k), contain; 1 without neighbours."""
    hits = sum(len(set(row) & set(exact_row)) for row, exact_row in zip(ids.tolist(), exact_ids, strict=True))
    return hits / neighbour_count if (neighbour_count := sum(map(len, exact_ids))) else 1.0
