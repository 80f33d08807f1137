"""Sorts candidate neighbours by cosines in float64, so that results do not depend on the machine.

Candidates are selected by float32 cosines. If many vectors are as near as the k-th neighbour, up to the error
of float32, some of them may be missing among the candidates. In this case, the query is compared with all
vectors in float64. ``find_pairs_within`` finds all pairs above a cosine, and compares pairs near the
threshold in float64.
"""

from collections.abc import Iterator

import numpy as np

TITLES_PER_BLOCK = 16_384  # titles in a float64 product with queries
PRODUCT_ENTRIES = 2_097_152  # entries of a float64 product: 16 MiB
QUERIES_PER_BATCH = 32  # .8 MiB with 33 candidates of 100 dimensions, which fits in the cache
DECIMALS = 12  # cosines are rounded to these decimals, so that equal vectors tie in any order of summation
TILE_SIDE = 1_024  # rows and columns of a tile, whose product fits in the cache
PAIRS_PER_BATCH = 16_384  # pairs compared in float64 at once: 32 MiB with 128 dimensions
TOLERANCE = 2e-6  # bound on the error of a float32 product of unit vectors (2.5e-7 with 128 dimensions)
ROUNDING = 1e-12  # tolerance for the float64 error at the threshold


def empty_neighbours(rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the result for rows without neighbours: ids -1 and cosines 0, both (rows, k)."""
    return np.full((rows, k), -1, dtype=np.int64), np.zeros((rows, k), dtype=np.float32)


def exact_cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Computes the cosine of left[i] and right[i] for each i, float64 (pairs,). Rows may have any norm."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    return np.einsum("ij,ij->i", left, right) / (np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1))


def order_candidates(
    queries: np.ndarray,
    base: np.ndarray,
    k: int,
    ids: np.ndarray,
    *,
    values: np.ndarray | None = None,
    self_offset: int | None = None,
    tolerance: float = TOLERANCE,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the best k candidates of each query by float64 cosine; ties are broken by the lower id.

    Args:
        queries: Vectors of queries, float32 (queries, dim), unit norm.
        base: Vectors of titles among which neighbours are searched, float32 (titles, dim), unit norm.
        k: Number of neighbours per query.
        ids: Candidates (rows of ``base``) of each query, int64 (queries, candidates), padded with -1.
        values: Float32 cosines of the candidates, descending. If they do not determine the k-th neighbour of
            a query, the query is compared with all titles. None: no query is compared with all titles.
        self_offset: Query i is the title ``self_offset + i``, which is not its own neighbour; None if queries
            are not titles.
        tolerance: Bound on the error of ``values``.

    Returns:
        The ids, int64, padded with -1, and the cosines, float32, padded with 0: both (queries, at most k).
    """
    cosines = np.empty(ids.shape)
    for start in range(0, len(queries), QUERIES_PER_BATCH):
        batch = slice(start, start + QUERIES_PER_BATCH)
        candidates = base[ids[batch]].astype(np.float64)  # (queries, candidates, dim)
        np.matmul(candidates, queries[batch, :, None].astype(np.float64), out=cosines[batch, :, None])
    cosines = np.where(ids < 0, -np.inf, cosines.round(DECIMALS))
    order = np.lexsort((ids, -cosines))[:, :k]
    best_ids, cosines = np.take_along_axis(ids, order, 1), np.take_along_axis(cosines, order, 1)
    if values is not None and k < values.shape[1] < len(base):
        is_close = values[:, k - 1] - values[:, -1] <= 2 * tolerance
        ambiguous_rows = np.flatnonzero(is_close & (ids >= 0).all(1))
        step = max(1, PRODUCT_ENTRIES // len(base))
        for chunk in (ambiguous_rows[start : start + step] for start in range(0, len(ambiguous_rows), step)):
            self_ids = None if self_offset is None else self_offset + chunk
            best_ids[chunk], cosines[chunk] = _search_in_float64(queries[chunk], base, k, self_ids)
    is_missing = cosines == -np.inf
    return np.where(is_missing, -1, best_ids), np.where(is_missing, 0, cosines).clip(-1, 1).astype(np.float32)


def _search_in_float64(
    queries: np.ndarray, base: np.ndarray, k: int, self_ids: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Compares queries with all titles. Returns ids and float64 cosines of the nearest, both (queries, k).

    ``self_ids`` are the ids of the queries, which are not their own neighbours; None if queries are not
    titles.
    """
    cosines = np.empty((len(queries), len(base)))
    for start in range(0, len(base), TITLES_PER_BLOCK):
        block = base[start : start + TITLES_PER_BLOCK].astype(np.float64)
        cosines[:, start : start + len(block)] = queries.astype(np.float64) @ block.T
    cosines = cosines.round(DECIMALS)
    if self_ids is not None:
        cosines[np.arange(len(queries)), self_ids] = -np.inf
    kth_cosine = np.partition(cosines, -k, axis=1)[:, -k, None]
    is_above, is_tied = cosines > kth_cosine, cosines == kth_cosine
    is_best = is_above | (is_tied & (is_tied.cumsum(1) <= k - is_above.sum(1, keepdims=True)))
    ids = np.nonzero(is_best)[1].reshape(
        len(queries), k
    )  # ascending, so that a stable sort breaks ties by id
    values = np.take_along_axis(cosines, ids, 1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(ids, order, 1), np.take_along_axis(values, order, 1)


def find_pairs_within(
    vectors: np.ndarray, minimum_cosine: float
) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Finds all pairs of rows of ``vectors`` whose cosine is at least ``minimum_cosine``.

    The matrix of products is computed in square tiles on and above the diagonal.

    Yields:
        The first row and the first column of a tile, and for each pair its row and its column in the tile,
        int64 (pairs,).
    """
    points = np.ascontiguousarray(vectors, dtype=np.float32)
    buffer = np.empty(TILE_SIDE * TILE_SIDE, dtype=np.float32)
    mask = np.empty(TILE_SIDE * TILE_SIDE, dtype=bool)
    lower_bound, upper_bound = (np.float32(minimum_cosine + error) for error in (-TOLERANCE, TOLERANCE))
    for first_row in range(0, len(points), TILE_SIDE):
        row_points = points[first_row : first_row + TILE_SIDE]
        for first_column in range(first_row, len(points), TILE_SIDE):
            column_points = points[first_column : first_column + TILE_SIDE]
            size = len(row_points) * len(column_points)
            tile = buffer[:size]
            np.matmul(row_points, column_points.T, out=tile.reshape(len(row_points), -1))
            indices = np.flatnonzero(np.greater_equal(tile, lower_bound, out=mask[:size]))
            rows = indices // len(column_points)
            columns = indices - rows * len(column_points)
            borderline_pairs = np.flatnonzero(tile[indices] < upper_bound)
            is_near = np.ones(len(indices), dtype=bool)
            for chunk in np.array_split(borderline_pairs, -(-len(borderline_pairs) // PAIRS_PER_BATCH) or 1):
                cosines = exact_cosines(row_points[rows[chunk]], column_points[columns[chunk]])
                is_near[chunk] = cosines >= minimum_cosine - ROUNDING
            yield first_row, first_column, rows[is_near], columns[is_near]
