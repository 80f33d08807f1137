"""Nearest titles behind one interface: every pair compared, or the titles of the nearest cells only.

Exact is the kernel of similarity.py: its time grows with the square of the titles. Approximate stands on faiss's inverted
file: k-means cuts the titles into cells, and only the cells whose centres are nearest to a query are searched. What is
found there is ordered in float64 like the exact neighbours, so where nothing is missed both give the same.

Why faiss: 21,842 titles of four English guides, 128 dimensions, 34 nearest of each, CPU seconds with the building, and
recall: its inverted file 1.5 s and .987 (256 cells, 32 probed), hnswlib 3.6 and .982, usearch 4.7 and .982, faiss's own
HNSW 4.2 and .983; exact 1.8. 100,000 titles in 200 groups: 9.8 s, 32, 57 and 33, all above .999; exact 23.
"""

from __future__ import annotations

import importlib.util
import logging
import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

import numpy as np
import torch

from tasks.form import FORM
from tasks.neighbours.settling import order_candidates
from tasks.neighbours.similarity import SPARE, known_rows, top_neighbours

QUERIES_AT_ONCE = 16_384
CELLS_PER_ROOT = 4  # cells: this many times the square root of the titles
TRAINED_PER_CELL = 40  # titles a cell that k-means looks at
TRAINING_PASSES = 10
REMEDY = "`pip install faiss-cpu` (the extra `approximate` of GuideSpace)"


class IndexMissing(ImportError):
    """The library of the approximate index is not installed."""


class Index(Protocol):
    """Finds the nearest of its titles; ids and cosines are as top_neighbours gives them."""

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest titles of each query: ids, int64, and cosines, float32, shape (queries, k); -1 and 0 for none."""
        ...

    def among_themselves(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest other titles of each title: the same, shape (titles, k)."""
        ...


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How nearest titles are found."""

    method: Literal["auto", "exact", "approximate"] = field(
        default="auto",
        metadata={"description": "Compare all pairs (exact), or those of the nearest cells (approximate, needs faiss-cpu), as suits the number of titles (auto)."},
    )
    exact_below: int = field(default=1_000_000, metadata={"description": "With auto: fewer titles are searched exactly, so many or more approximately.", "ge": 1})
    probes: int = field(default=32, metadata={"description": "Cells that an approximate search looks into; more find more, and take longer.", "ge": 1})
    __pydantic_config__: ClassVar = FORM

    def open(self, titles: np.ndarray) -> Index:
        """The index of some titles. Where auto would be approximate and faiss is missing, it is exact, with a warning.

        Args:
            titles: float32, shape (titles, dim), unit norm or zero; kept, not copied, by the exact one.

        Raises:
            IndexMissing: An approximate index is asked for, and faiss is not installed.
        """
        many = self.method == "auto" and len(titles) >= self.exact_below
        if many and importlib.util.find_spec("faiss") is None:
            logging.getLogger(__name__).warning("%d titles are searched exactly, which takes long: %s", len(titles), REMEDY)
            many = False
        return Approximate(titles, probes=self.probes) if many or self.method == "approximate" else Exact(titles)


AUTO = SearchSettings()


class Exact:
    """Every pair compared."""

    def __init__(self, titles: np.ndarray) -> None:
        self.titles = titles

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """As the protocol says."""
        return top_neighbours(queries, self.titles, k)

    def among_themselves(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """As the protocol says."""
        return top_neighbours(self.titles, self.titles, k, exclude_self=True)


class Approximate:
    """The titles of the nearest cells compared.

    Args:
        titles: float32, shape (titles, dim), unit norm or zero.
        probes: Cells that are searched for a query.

    Raises:
        IndexMissing: faiss is not installed.
    """

    def __init__(self, titles: np.ndarray, *, probes: int = 32) -> None:
        try:
            import faiss  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise IndexMissing(f"an approximate search needs faiss, which is not installed: {REMEDY}, or set the search's method to exact") from error
        faiss.omp_set_num_threads(torch.get_num_threads())
        self.titles = titles
        self.known = np.flatnonzero(known_rows(titles))
        self.points = np.ascontiguousarray(titles if len(self.known) == len(titles) else titles[self.known], dtype=np.float32)
        self.cells = max(1, min(round(CELLS_PER_ROOT * math.sqrt(len(self.known))), len(self.known) // TRAINED_PER_CELL))
        dim = titles.shape[1]
        self.inverted = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, self.cells, faiss.METRIC_INNER_PRODUCT)
        self.inverted.nprobe = probes
        self.inverted.cp.spherical, self.inverted.cp.niter = True, TRAINING_PASSES
        if len(self.known):
            drawn = np.random.default_rng(0).permutation(len(self.known))[: TRAINED_PER_CELL * self.cells]
            self.inverted.train(self.points[np.sort(drawn)])
            self.inverted.add(self.points)

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """As the protocol says."""
        return self._search(queries, k, own=None)

    def among_themselves(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """As the protocol says."""
        ids, cosines = np.full((len(self.titles), k), -1, dtype=np.int64), np.zeros((len(self.titles), k), dtype=np.float32)
        ids[self.known], cosines[self.known] = self._search(self.points, k, own=np.arange(len(self.points)))
        return ids, cosines

    def _search(self, queries: np.ndarray, k: int, own: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest of each query but the title it is itself: ``own``, its place among the known ones."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        ids, cosines = np.full((len(queries), k), -1, dtype=np.int64), np.zeros((len(queries), k), dtype=np.float32)
        asked = np.flatnonzero(known_rows(queries, "queries"))
        if not len(self.points):
            return ids, cosines
        columns = torch.from_numpy(self.points)
        for start in range(0, len(asked), QUERIES_AT_ONCE):
            rows = asked[start : start + QUERIES_AT_ONCE]
            part = np.ascontiguousarray(queries[rows], dtype=np.float32)
            found = self.inverted.search(part, min(k + SPARE + (own is not None), len(self.points)))[1]
            if own is not None:
                found[found == own[rows][:, None]] = -1
            best, exact = order_candidates(torch.from_numpy(part), columns, k, torch.from_numpy(found))
            ids[rows, : best.shape[1]] = np.where(best >= 0, self.known[best], -1)
            cosines[rows, : best.shape[1]] = exact
        return ids, cosines


def sampled_recall(titles: np.ndarray, ids: np.ndarray, sample: int = 1_000) -> float:
    """Share of the exact nearest titles that were found, for some titles; 1 where no title has any.

    Args:
        titles: float32, shape (titles, dim), unit norm or zero.
        ids: What was found of each title, itself excluded: integers, shape (titles, k); -1 for none.
        sample: Titles asked; drawn the same way every time.
    """
    known = np.flatnonzero(known_rows(titles))
    asked = np.sort(np.random.default_rng(0).permutation(known)[:sample])
    k = ids.shape[1]
    exact = top_neighbours(titles[asked], titles, k + 1)[0]
    hits = wanted = 0
    for row, nearest in zip(asked.tolist(), exact.tolist(), strict=True):
        true = [other for other in nearest if other not in (row, -1)][:k]
        hits += len(set(true) & set(ids[row].tolist()))
        wanted += len(true)
    return hits / wanted if wanted else 1.0


def query_recall(index: Index, titles: np.ndarray, k: int, sample: int = 200) -> float:
    """Share of the exact nearest titles that an index finds for queries: some of its own titles; 1 where none is known.

    Args:
        index: Of the titles.
        titles: float32, shape (titles, dim), unit norm or zero.
        k: Nearest titles of each, itself the first of them.
        sample: Titles asked; drawn the same way every time.
    """
    known = np.flatnonzero(known_rows(titles))
    queries = titles[np.sort(np.random.default_rng(0).permutation(known)[:sample])]
    found, exact = index.nearest(queries, k)[0], top_neighbours(queries, titles, k)[0]
    wanted = int((exact >= 0).sum())
    return sum(len(set(own) & set(true) - {-1}) for own, true in zip(found.tolist(), exact.tolist(), strict=True)) / wanted if wanted else 1.0
