"""Orders a row's few candidate neighbours by their cosines in float64.

Order, ties and cosines then do not depend on tiles, threads or the machine. Where more candidates lie within
float32's error of the k-th than were kept (many equal vectors), the row is compared with the whole base.
``pairs_within`` finds all pairs above a cosine; those within float32's error of it are decided in float64.
"""

from collections.abc import Iterator

import numpy as np
import torch

BASE_BLOCK = 16_384  # columns of one product in float64
PRODUCT = 2_097_152  # entries of a product in float64: 16 MiB
SCORED_AT_ONCE = 32  # rows scored together: .8 MiB at 33 candidates of 100 dimensions stay in the cache
DECIMALS = 12  # of compared cosines: equal vectors tie, however their sum was blocked
SIDE = 1_024  # rows and columns of a tile of pairs: its product stays in the processor's cache
PAIRS_AT_ONCE = 16_384  # pairs decided in float64 together: 32 MiB at 128 dimensions
ROUNDING = 1e-12  # a cosine this much below the threshold still counts: float64's own error


def product_tolerance() -> float:
    """How far a float32 product of unit vectors may be from the true cosine (at 128 dimensions: 2.5e-7)."""
    return 2e-6 if torch.get_float32_matmul_precision() == "highest" else 2e-2


def no_neighbours(rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids and cosines (rows, k) of rows without neighbours: -1 and 0."""
    return np.full((rows, k), -1, dtype=np.int64), np.zeros((rows, k), dtype=np.float32)


def exact_cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Cosines of corresponding rows in float64, norms divided out: shape (pairs,)."""
    wide = left.astype(np.float64), right.astype(np.float64)
    return np.einsum("ij,ij->i", *wide) / (np.linalg.norm(wide[0], axis=1) * np.linalg.norm(wide[1], axis=1))


def order_candidates(
    rows: np.ndarray,
    columns: np.ndarray,
    k: int,
    ids: np.ndarray,
    values: np.ndarray | None = None,
    own: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The best k candidates of each row by float64 cosine, equal ones by the lower id.

    Args:
        rows: float32, shape (rows, dim), unit norm.
        columns: float32, shape (titles, dim), unit norm: the base.
        k: Neighbours a row.
        ids: Candidates, int64, shape (rows, wanted); -1 for none.
        values: Their float32 cosines, falling: rows whose k-th is unclear are then compared with the whole
            base; None leaves out what an approximate search has missed.
        own: The title that is the first row itself, those after it the other rows'; None: rows are no titles.

    Returns:
        Ids, int64, -1 for none, and cosines, float32, 0 for none: shape (rows, at most k).
    """
    exact = np.empty(ids.shape)
    for start in range(0, len(rows), SCORED_AT_ONCE):
        part = slice(start, start + SCORED_AT_ONCE)
        wide = columns[ids[part]].astype(np.float64), rows[part, :, None].astype(np.float64)
        np.matmul(*wide, out=exact[part, :, None])
    exact = np.where(ids < 0, -np.inf, exact.round(DECIMALS))
    order = np.lexsort((ids, -exact))[:, :k]
    best, cosines = np.take_along_axis(ids, order, 1), np.take_along_axis(exact, order, 1)
    if values is not None and k < values.shape[1] < len(columns):
        close = values[:, k - 1] - values[:, -1] <= 2 * product_tolerance()
        unclear = np.flatnonzero(close & (ids >= 0).all(1))
        step = max(1, PRODUCT // len(columns))
        for chunk in (unclear[start : start + step] for start in range(0, len(unclear), step)):
            hidden = None if own is None else own + chunk
            best[chunk], cosines[chunk] = _best_in_float64(rows[chunk], columns, k, hidden)
    absent = cosines == -np.inf
    return np.where(absent, -1, best), np.where(absent, 0, cosines).clip(-1, 1).astype(np.float32)


def _best_in_float64(
    rows: np.ndarray, columns: np.ndarray, k: int, hidden: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    exact = np.empty((len(rows), len(columns)))
    for start in range(0, len(columns), BASE_BLOCK):
        part = columns[start : start + BASE_BLOCK].astype(np.float64)
        exact[:, start : start + len(part)] = rows.astype(np.float64) @ part.T
    exact = exact.round(DECIMALS)
    if hidden is not None:
        exact[np.arange(len(rows)), hidden] = -np.inf
    last = np.partition(exact, -k, axis=1)[:, -k, None]
    above, level = exact > last, exact == last
    kept = above | (level & (level.cumsum(1) <= k - above.sum(1, keepdims=True)))
    ids = np.nonzero(kept)[1].reshape(len(rows), k)  # rising, so that a stable sort keeps ties in their order
    values = np.take_along_axis(exact, ids, 1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(ids, order, 1), np.take_along_axis(values, order, 1)


def pairs_within(
    vectors: np.ndarray, minimum_cosine: float
) -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
    """Pairs of unit rows, float32 (titles, dim), in square tiles on and above the diagonal.

    Yields:
        First row and column of a tile, and within it row and column of each pair: int64, in this order.
    """
    points = np.ascontiguousarray(vectors, dtype=np.float32)
    room, mask = torch.empty(SIDE * SIDE), np.empty(SIDE * SIDE, dtype=bool)
    tolerance = product_tolerance()
    low, high = (np.float32(minimum_cosine + error) for error in (-tolerance, tolerance))
    for top in range(0, len(points), SIDE):
        part = points[top : top + SIDE]
        for left in range(top, len(points), SIDE):
            other = points[left : left + SIDE]
            size = len(part) * len(other)
            product = room[:size].view(len(part), -1)
            torch.mm(torch.from_numpy(part), torch.from_numpy(other).T, out=product)
            tile = product.numpy().reshape(-1)
            places = np.flatnonzero(np.greater_equal(tile, low, out=mask[:size]))
            here = places // len(other)
            there = places - here * len(other)
            unsure = np.flatnonzero(tile[places] < high)
            keep = np.ones(len(places), dtype=bool)
            for some in np.array_split(unsure, -(-len(unsure) // PAIRS_AT_ONCE) or 1):
                exact = exact_cosines(part[here[some]], other[there[some]])
                keep[some] = exact >= minimum_cosine - ROUNDING
            yield top, left, here[keep], there[keep]
