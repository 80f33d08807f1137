"""Finds the exact neighbours of a few queries with 8-bit codes, which have a quarter of the bytes of float32.

Each vector y is quantized to y' = s · c with integers c from -127 to 127 and s = max |y| / 127, and the error
e = |y - y'| is stored. For a query x of unit norm, x·y is between x·y' - e and x·y' + e. Let T be the k-th
largest lower bound x·y' - e. A vector whose upper bound is below T is not among the k nearest. The remaining
vectors, a few hundred of 20,000, are compared in float32. No neighbour is missed, so the result equals that
of similarity.top_neighbours.

References:
    Weber, Schek, Blott. A Quantitative Analysis and Performance Study for Similarity-Search Methods in
    High-Dimensional Spaces. VLDB 1998 (VA-file): bounds from codes, then exact distances of the rest. We
    differ: one scale per vector, and bounds from the triangle inequality instead of cells.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import no_type_check

import numpy as np

from storage.arrays import row_blocks
from storage.shapes import Float32, Int8
from tasks.compiled import compiled, has_numba
from tasks.neighbours.index import Exact, Index
from tasks.neighbours.rescoring import TOLERANCE, empty_neighbours, order_candidates
from tasks.neighbours.similarity import EXTRA_CANDIDATES, FEW_QUERIES, nonzero_rows

MAX_CODE = 127  # largest absolute value of a code
MAX_NORM = 1.001  # upper bound on the norm of a query (similarity.nonzero_rows)


@dataclass(frozen=True, eq=False)
class QuantizedVectors:
    """Unit vectors and their 8-bit codes, with which the exact neighbours of queries are searched."""

    vectors: Float32[np.ndarray, "titles dim"]
    codes: Int8[np.ndarray, "titles dim"]
    scales: Float32[np.ndarray, " titles"]  # factor s of each vector
    errors: Float32[np.ndarray, " titles"]  # |y - y'| plus the error of float32 products

    @staticmethod
    def from_vectors(vectors: np.ndarray) -> "QuantizedVectors":
        """Quantizes unit vectors, float32 (titles, dim), to 8 bits."""
        codes = np.empty(vectors.shape, dtype=np.int8)
        scales, errors = np.empty((2, len(vectors)), dtype=np.float32)
        for block in row_blocks(len(vectors)):
            rows = vectors[block]
            scales[block] = np.abs(rows).max(axis=1, initial=0) / MAX_CODE
            codes[block] = np.rint(rows / scales[block, None])
            row_errors = np.linalg.norm(rows - codes[block] * scales[block, None], axis=1)
            errors[block] = MAX_NORM * row_errors + TOLERANCE
        return QuantizedVectors(vectors, codes, scales, errors)

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids and the cosines of the k nearest vectors of each query, both (queries, k).

        ``queries`` are float32 (queries, dim) with unit norm. The result equals that of ``top_neighbours``.
        """
        count = min(k + EXTRA_CANDIDATES, len(self.vectors))
        upper_bounds = np.empty((len(queries), len(self.vectors)), dtype=np.float32)
        lower_bounds = np.full((len(queries), count), -np.inf, dtype=np.float32)
        compiled(_compute_bounds, fastmath=True)(
            self.codes, self.scales, self.errors, queries, upper_bounds, lower_bounds
        )
        candidate_ids = np.empty((len(queries), count), dtype=np.int64)
        products = np.empty((len(queries), count), dtype=np.float32)
        for row, query in enumerate(queries):
            possible_ids = np.flatnonzero(upper_bounds[row] >= lower_bounds[row, 0])
            possible_products = self.vectors[possible_ids] @ query
            order = np.lexsort((possible_ids, -possible_products))[:count]
            candidate_ids[row], products[row] = possible_ids[order], possible_products[order]
        ids, cosines = empty_neighbours(len(queries), k)
        best_ids, best_cosines = order_candidates(queries, self.vectors, k, candidate_ids, values=products)
        ids[:, : best_ids.shape[1]], cosines[:, : best_ids.shape[1]] = best_ids, best_cosines
        return ids, cosines


class QuantizedExact(Exact):
    """Exact index with 8-bit codes, which make it faster than ``Exact`` for up to eight queries."""

    @cached_property
    def _quantized(self) -> QuantizedVectors:
        return QuantizedVectors.from_vectors(self.nonzero[1])

    def nearest(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids and the cosines of the k nearest titles of each query, both (queries, k)."""
        rows = self.nonzero[0]
        if not len(rows) or len(queries) > FEW_QUERIES or not nonzero_rows(queries, "queries").all():
            return super().nearest(queries, k)
        ids, cosines = self._quantized.nearest(np.ascontiguousarray(queries, dtype=np.float32), k)
        return np.append(rows, -1)[ids], cosines


def with_codes(index: Index) -> Index:
    """Returns an exact index of the same titles with 8-bit codes, which save time from hundreds of calls on.

    An approximate index is returned unchanged. If numba is not installed, every index is returned unchanged.
    """
    return QuantizedExact(index.vectors) if type(index) is Exact and has_numba() else index


@no_type_check
def _compute_bounds(  # compiled by numba: a single function of arrays and numbers
    codes: np.ndarray,
    scales: np.ndarray,
    errors: np.ndarray,
    queries: np.ndarray,
    upper_bounds: np.ndarray,
    lower_bounds: np.ndarray,
) -> None:
    """Computes bounds on the dot product of each query and each title from the code of the title.

    Writes all upper bounds to ``upper_bounds``, float32 (queries, titles), and the largest lower bounds of
    each query to ``lower_bounds``, float32 (queries, count), as a min-heap.
    """
    count = lower_bounds.shape[1]
    for title in range(codes.shape[0]):
        for row in range(queries.shape[0]):
            product = np.float32(0)
            for axis in range(codes.shape[1]):
                product += queries[row, axis] * np.float32(codes[title, axis])
            product *= scales[title]
            upper_bounds[row, title] = product + errors[title]
            lower_bound = product - errors[title]
            if lower_bound <= lower_bounds[row, 0]:
                continue
            parent, child = 0, 1
            while child < count:
                if child + 1 < count and lower_bounds[row, child + 1] < lower_bounds[row, child]:
                    child += 1
                if lower_bounds[row, child] >= lower_bound:
                    break
                lower_bounds[row, parent] = lower_bounds[row, child]
                parent, child = child, 2 * child + 1
            lower_bounds[row, parent] = lower_bound
