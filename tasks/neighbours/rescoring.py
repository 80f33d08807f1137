"""Sorts candidate neighbours by cosines in float64, so that results do not depend on the machine.

Candidates are selected in float32. If many vectors are as near as the k-th neighbour, up to the error of
float32, the candidates may lack some of them; then the query is compared with the entire base.
``find_pairs_within`` finds all pairs above a cosine. It compares pairs near the threshold in float64.
"""

from collections.abc import Iterator

import numpy as np

BASE_BLOCK = 16_384  # columns of a float64 product of a query with the entire base
PRODUCT_ENTRIES = 2_097_152  # entries of a float64 product: 16 MiB
ROWS_PER_BATCH = 32  # .8 MiB with 33 candidates of 100 dimensions, which fits in the cache
DECIMALS = 12  # compared cosines are rounded, so that equal vectors tie in any order of summation
TILE_SIDE = 1_024  # rows and columns of a tile, whose product fits in the cache
PAIRS_PER_BATCH = 16_384  # pairs compared in float64 at once: 32 MiB with 128 dimensions
TOLERANCE = 2e-6  # bound on the error of a float32 product of unit vectors (2.5e-7 with 128 dimensions)
ROUNDING = 1e-12  # tolerance for the float64 error at the threshold


def empty_neighbours(rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns ids -1 and cosines 0, both (rows, k): the result for rows without neighbours."""
    return np.full((rows, k), -1, dtype=np.int64), np.zeros((rows, k), dtype=np.float32)


def exact_cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Computes the cosines of left[i] and right[i], float64 (pairs,). Rows may have any norm."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    return np.einsum("ij,ij->i", left, right) / (np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1))


def order_candidates(
    rows: np.ndarray,
    columns: np.ndarray,
    k: int,
    ids: np.ndarray,
    values: np.ndarray | None = None,
    self_offset: int | None = None,
    tolerance: float = TOLERANCE,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the best k candidates of each row by float64 cosine; ties are broken by the lower id.

    Args:
        rows: Queries, float32 (rows, dim), unit norm.
        columns: The base, float32 (titles, dim), unit norm.
        k: Neighbours per row.
        ids: Candidates, int64 (rows, candidates); -1 for none.
        values: Float32 cosines of the candidates, descending. If they do not determine the k-th
            neighbour of a row, it is compared with the entire base. None: this comparison is skipped.
        self_offset: Row i is title ``self_offset + i`` of the base, which is not its own neighbour; None if
            rows are not titles of the base.
        tolerance: Bound on the error of ``values``.

    Returns:
        Ids, int64, -1 for none, and cosines, float32, 0 for none: (rows, at most k).
    """
    cosines = np.empty(ids.shape)
    for start in range(0, len(rows), ROWS_PER_BATCH):
        part = slice(start, start + ROWS_PER_BATCH)
        operands = columns[ids[part]].astype(np.float64), rows[part, :, None].astype(np.float64)
        np.matmul(*operands, out=cosines[part, :, None])
    cosines = np.where(ids < 0, -np.inf, cosines.round(DECIMALS))
    order = np.lexsort((ids, -cosines))[:, :k]
    best, cosines = np.take_along_axis(ids, order, 1), np.take_along_axis(cosines, order, 1)
    if values is not None and k < values.shape[1] < len(columns):
        close = values[:, k - 1] - values[:, -1] <= 2 * tolerance
        ambiguous_rows = np.flatnonzero(close & (ids >= 0).all(1))
        step = max(1, PRODUCT_ENTRIES // len(columns))
        for chunk in (ambiguous_rows[start : start + step] for start in range(0, len(ambiguous_rows), step)):
            excluded_ids = None if self_offset is None else self_offset + chunk
            best[chunk], cosines[chunk] = _search_in_float64(rows[chunk], columns, k, excluded_ids)
    is_missing = cosines == -np.inf
    return np.where(is_missing, -1, best), np.where(is_missing, 0, cosines).clip(-1, 1).astype(np.float32)


def _search_in_float64(
    rows: np.ndarray, columns: np.ndarray, k: int, excluded_ids: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    cosines = np.empty((len(rows), len(columns)))
    for start in range(0, len(columns), BASE_BLOCK):
        part = columns[start : start + BASE_BLOCK].astype(np.float64)
        cosines[:, start : start + len(part)] = rows.astype(np.float64) @ part.T
    cosines = cosines.round(DECIMALS)
    if excluded_ids is not None:
        cosines[np.arange(len(rows)), excluded_ids] = -np.inf
    kth_cosine = np.partition(cosines, -k, axis=1)[:, -k, None]
    is_above, is_tied = cosines > kth_cosine, cosines == kth_cosine
    is_best = is_above | (is_tied & (is_tied.cumsum(1) <= k - is_above.sum(1, keepdims=True)))
    ids = np.nonzero(is_best)[1].reshape(len(rows), k)  # ascending, so that a stable sort breaks ties by id
    values = np.take_along_axis(cosines, ids, 1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(ids, order, 1), np.take_along_axis(values, order, 1)


def find_pairs_within(
    vectors: np.ndarray, minimum_cosine: float
) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Finds all pairs of rows whose cosine is at least ``minimum_cosine``.

    Works in square tiles on and above the diagonal.

    Yields:
        First row and first column of a tile, and the rows and columns of its pairs within the tile, int64.
    """
    points = np.ascontiguousarray(vectors, dtype=np.float32)
    buffer = np.empty(TILE_SIDE * TILE_SIDE, dtype=np.float32)
    mask = np.empty(TILE_SIDE * TILE_SIDE, dtype=bool)
    lower_bound, upper_bound = (np.float32(minimum_cosine + error) for error in (-TOLERANCE, TOLERANCE))
    for first_row in range(0, len(points), TILE_SIDE):
        part = points[first_row : first_row + TILE_SIDE]
        for first_column in range(first_row, len(points), TILE_SIDE):
            column_points = points[first_column : first_column + TILE_SIDE]
            size = len(part) * len(column_points)
            tile = buffer[:size]
            np.matmul(part, column_points.T, out=tile.reshape(len(part), -1))
            places = np.flatnonzero(np.greater_equal(tile, lower_bound, out=mask[:size]))
            pair_rows = places // len(column_points)
            pair_columns = places - pair_rows * len(column_points)
            borderline = np.flatnonzero(tile[places] < upper_bound)
            is_near = np.ones(len(places), dtype=bool)
            for chunk in np.array_split(borderline, -(-len(borderline) // PAIRS_PER_BATCH) or 1):
                pair_cosines = exact_cosines(part[pair_rows[chunk]], column_points[pair_columns[chunk]])
                is_near[chunk] = pair_cosines >= minimum_cosine - ROUNDING
            yield first_row, first_column, pair_rows[is_near], pair_columns[is_near]
