"""Nearest titles behind one interface: every pair compared, or the titles of the nearest cells only.

Approximate uses faiss's inverted file (docs/LOG.md has it beside hnswlib and usearch), with vectors in
float16: half the memory and half the time of float32. Candidates are ordered in float64 like the exact
neighbours, so where nothing is missed both give the same.
"""

import importlib.util
import logging
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import torch

from storage.arrays import row_blocks
from tasks.form import configurable, setting
from tasks.neighbours.rescoring import no_neighbours, order_candidates
from tasks.neighbours.similarity import SPARE, known_rows, some_rows, top_neighbours

QUERIES_AT_ONCE = 16_384
CELLS_PER_ROOT = 4  # cells: this many times the square root of the titles
TRAINED_PER_CELL = 40  # titles a cell that k-means is trained on
TRAINING_PASSES = 10
_METHOD = (
    "Compare all pairs (exact), or those of the nearest cells (approximate, needs faiss-cpu), "
    "as suits the number of titles (auto)."
)
_EXACT_BELOW = "With auto: fewer titles are searched exactly, so many or more approximately."
_PROBES = "Cells that an approximate search looks into; more find more, and take longer."
REMEDY = "`pip install faiss-cpu` (the extra `approximate` of GuideSpace)"


class IndexMissing(ImportError):
    """The library of the approximate index is not installed."""


class Index(Protocol):
    """Finds the nearest of its titles: ids, int64, and cosines, float32, as top_neighbours returns them."""

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest titles of each query, shape (queries, k)."""
        ...

    def among_themselves(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest other titles of each title, shape (titles, k)."""
        ...


@configurable
class SearchSettings:
    """How nearest titles are found."""

    method: Literal["auto", "exact", "approximate"] = setting("auto", _METHOD)
    exact_below: int = setting(1_000_000, _EXACT_BELOW, ge=1)
    probes: int = setting(64, _PROBES, ge=1)

    def open(self, titles: np.ndarray) -> Index:
        """The index of titles, float32 (titles, dim), unit norm or zero.

        Raises:
            IndexMissing: An approximate index is requested (not by auto), and faiss is not installed.
        """
        many = self.method == "auto" and len(titles) >= self.exact_below
        if many and importlib.util.find_spec("faiss") is None:
            message = "%d titles are searched exactly, which takes long: %s"
            logging.getLogger(__name__).warning(message, len(titles), REMEDY)
            many = False
        approximate = many or self.method == "approximate"
        return Approximate(titles, probes=self.probes) if approximate else Exact(titles)


AUTO = SearchSettings()


@dataclass
class Exact:
    """Compares every pair."""

    titles: np.ndarray

    @cached_property
    def known(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows that are not zero, and their vectors: looked for once, not for each query."""
        known = np.flatnonzero(known_rows(self.titles))
        return known, some_rows(self.titles, known)

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """As in Index."""
        known, points = self.known
        ids, cosines = top_neighbours(queries, points, k, checked=True)
        return np.append(known, -1)[ids], cosines

    def among_themselves(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """As in Index."""
        return top_neighbours(self.titles, self.titles, k, exclude_self=True)


class Approximate:
    """Compares a query with the titles of the ``probes`` nearest cells."""

    def __init__(self, titles: np.ndarray, *, probes: int = 64) -> None:
        try:
            import faiss  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            missing = f"an approximate search needs faiss, which is not installed: {REMEDY}"
            raise IndexMissing(f"{missing}, or set the search's method to exact") from error
        faiss.omp_set_num_threads(torch.get_num_threads())
        self.titles, dim = titles, titles.shape[1]
        known = np.flatnonzero(known_rows(titles))
        self.count = count = len(known)
        self.cells = max(1, min(round(CELLS_PER_ROOT * math.sqrt(count)), count // TRAINED_PER_CELL))
        whole = faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT, False  # no residuals
        self.inverted = faiss.IndexIVFScalarQuantizer(faiss.IndexFlatIP(dim), dim, self.cells, *whole)
        self.inverted.nprobe = probes
        self.inverted.cp.spherical, self.inverted.cp.niter = True, TRAINING_PASSES
        if count:
            drawn = np.random.default_rng(0).permutation(count)[: TRAINED_PER_CELL * self.cells]
            self.inverted.train(some_rows(titles, known[np.sort(drawn)]))
            for start in range(0, count, QUERIES_AT_ONCE):  # one by one they need no copy of all
                own = known[start : start + QUERIES_AT_ONCE]
                self.inverted.add_with_ids(np.ascontiguousarray(titles[own], dtype=np.float32), own)

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """As in Index."""
        return self._search(queries, k)

    def among_themselves(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """As in Index."""
        return self._search(self.titles, k, themselves=True)

    def _search(self, queries: np.ndarray, k: int, themselves: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest of each query; ``themselves``: row i is title i, and not near itself."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        ids, cosines = no_neighbours(len(queries), k)
        asked = np.flatnonzero(known_rows(queries, "queries"))
        for start in range(0, len(asked) if self.count else 0, QUERIES_AT_ONCE):
            rows = asked[start : start + QUERIES_AT_ONCE]
            part = np.ascontiguousarray(queries[rows], dtype=np.float32)
            found = self.inverted.search(part, min(k + SPARE + themselves, self.count))[1]
            if themselves:
                found[found == rows[:, None]] = -1
            best, exact = order_candidates(part, self.titles, k, found)
            ids[rows, : best.shape[1]] = best
            cosines[rows, : best.shape[1]] = exact
        return ids, cosines


def sampled_recall(titles: np.ndarray, ids: np.ndarray, sample: int = 1_000) -> float:
    """Share of the exact nearest other titles that are in ``ids``, (titles, k), for a fixed sample."""
    asked, k = _sample(titles, sample), ids.shape[1]
    exact = _nearest(titles[asked], titles, k + 1).tolist()
    others = [[one for one in row if one not in (own, -1)][:k] for own, row in zip(asked, exact, strict=True)]
    return _recall(ids[asked], others)


def query_recall(index: Index, titles: np.ndarray, k: int, sample: int = 200) -> float:
    """Share of the exact k nearest that an index finds for a fixed sample of its own titles."""
    queries = titles[_sample(titles, sample)]
    exact = _nearest(queries, titles, k).tolist()
    return _recall(index.nearest(queries, k)[0], [[one for one in row if one >= 0] for row in exact])


def _nearest(queries: np.ndarray, titles: np.ndarray, k: int) -> np.ndarray:
    """Ids as of top_neighbours, found block by block: without a copy of all titles."""
    ids, cosines = no_neighbours(len(queries), k)
    cosines -= 2
    for own in row_blocks(len(titles)):
        near, values = top_neighbours(queries, titles[own], k)
        ids = np.hstack([ids, np.where(near < 0, -1, near + own.start)])
        cosines = np.hstack([cosines, np.where(near < 0, -2, values)])
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
        ids, cosines = (np.take_along_axis(array, best, 1) for array in (ids, cosines))
    return ids


def _sample(titles: np.ndarray, count: int) -> np.ndarray:
    known = np.flatnonzero(known_rows(titles))
    return np.sort(np.random.default_rng(0).permutation(known)[:count])


def _recall(found: np.ndarray, exact: list[list[int]]) -> float:
    hits = sum(len(set(one) & set(other)) for one, other in zip(found.tolist(), exact, strict=True))
    return hits / wanted if (wanted := sum(map(len, exact))) else 1.0
