"""Exact neighbours of a few queries by codes of one byte a dimension: a quarter of the memory that is read.

Each vector y is stored as y' = s · c with whole numbers c from -127 to 127 and s = max |y| / 127, beside the
error e = |y - y'|. For a unit query x then x·y lies within e of x·y'. With T the k-th largest of x·y' - e, no
vector with x·y' + e < T is among the k nearest; products with the others, some hundreds of 20,000, are made
in float32. Nothing is missed: the result is that of similarity.top_neighbours.

References:
    Weber, Schek, Blott. A Quantitative Analysis and Performance Study for Similarity-Search Methods in
    High-Dimensional Spaces. VLDB 1998 (VA-file): bounds by codes, then the vectors that they leave. We
    differ: a scale for each vector, and the triangle inequality in the place of cells.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import no_type_check

import numpy as np

from storage.arrays import row_blocks
from storage.shapes import Float32, Int8
from tasks.compiled import available, compiled
from tasks.neighbours.index import Exact, Index
from tasks.neighbours.rescoring import no_neighbours, order_candidates, product_tolerance
from tasks.neighbours.similarity import FEW, SPARE, known_rows

LARGEST = 127
UNIT = 1.001  # the norm of a query is at most this: similarity.known_rows


@dataclass(frozen=True, eq=False)
class Codes:
    """Vectors of unit norm, and their codes."""

    vectors: Float32[np.ndarray, "titles dim"]
    codes: Int8[np.ndarray, "titles dim"]
    scales: Float32[np.ndarray, " titles"]
    errors: Float32[np.ndarray, " titles"]  # with what float32 adds to them

    @staticmethod
    def of(vectors: np.ndarray) -> "Codes":
        """Codes of vectors, float32 (titles, dim), of unit norm."""
        codes = np.empty(vectors.shape, dtype=np.int8)
        scales, errors = np.empty((2, len(vectors)), dtype=np.float32)
        for own in row_blocks(len(vectors)):
            rows = vectors[own]
            scales[own] = np.abs(rows).max(axis=1, initial=0) / LARGEST
            codes[own] = np.rint(rows / scales[own, None])
            lost = np.linalg.norm(rows - codes[own] * scales[own, None], axis=1)
            errors[own] = UNIT * lost + product_tolerance()
        return Codes(vectors, codes, scales, errors)

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """As ``top_neighbours(queries, vectors, k)``; queries, float32 (queries, dim), have unit norm."""
        wanted = min(k + SPARE, len(self.vectors))
        most = np.empty((len(queries), len(self.vectors)), dtype=np.float32)
        least = np.full((len(queries), wanted), -np.inf, dtype=np.float32)
        compiled(_bound, fastmath=True)(self.codes, self.scales, self.errors, queries, most, least)
        ids = np.empty((len(queries), wanted), dtype=np.int64)
        values = np.empty((len(queries), wanted), dtype=np.float32)
        for place, query in enumerate(queries):
            near = np.flatnonzero(most[place] >= least[place, 0])
            products = self.vectors[near] @ query
            order = np.lexsort((near, -products))[:wanted]
            ids[place], values[place] = near[order], products[order]
        found, cosines = no_neighbours(len(queries), k)
        best = order_candidates(queries, self.vectors, k, ids, values)
        found[:, : best[0].shape[1]], cosines[:, : best[1].shape[1]] = best
        return found, cosines


class Coded(Exact):
    """Compares every pair; up to eight queries by codes."""

    @cached_property
    def _codes(self) -> Codes:
        return Codes.of(self.known[1])

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """As in Index."""
        rows = self.known[0]
        if not len(rows) or len(queries) > FEW or not known_rows(queries, "queries").all():
            return super().nearest(queries, k)
        ids, cosines = self._codes.nearest(np.ascontiguousarray(queries, dtype=np.float32), k)
        return np.append(rows, -1)[ids], cosines


def with_codes(index: Index) -> Index:
    """The same index with codes, worth it for hundreds of calls with few queries; itself if it is
    approximate, or numba is missing.
    """
    return Coded(index.titles) if type(index) is Exact and available() else index


@no_type_check
def _bound(  # numba: one function, arrays and numbers
    codes: np.ndarray,
    scales: np.ndarray,
    errors: np.ndarray,
    queries: np.ndarray,
    most: np.ndarray,
    least: np.ndarray,
) -> None:
    """The most that each product can be; and, as a heap whose root is the smallest, the greatest of what they
    are at least.
    """
    wanted = least.shape[1]
    for title in range(codes.shape[0]):
        for row in range(queries.shape[0]):
            product = np.float32(0)
            for axis in range(codes.shape[1]):
                product += queries[row, axis] * np.float32(codes[title, axis])
            product *= scales[title]
            most[row, title] = product + errors[title]
            low = product - errors[title]
            if low <= least[row, 0]:
                continue
            place, child = 0, 1
            while child < wanted:
                if child + 1 < wanted and least[row, child + 1] < least[row, child]:
                    child += 1
                if least[row, child] >= low:
                    break
                least[row, place] = least[row, child]
                place, child = child, 2 * child + 1
            least[row, place] = low
