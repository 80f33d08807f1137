"""Updates the nearest titles of an earlier night: the result equals that of an exact search of all titles.

Let K be the titles whose vectors are those of the earlier night, bit for bit, and F the other titles. A title
of K whose earlier neighbours are all in K has the same k nearest titles within K. Its new neighbours are the
best k of these and its k nearest titles within F, sorted by float64 cosines as in every search. Titles of F,
and those of K that have lost a neighbour, are compared with all titles.
"""

import numpy as np

from storage.shapes import Float32, Int
from tasks.neighbours.rescoring import empty_neighbours, order_candidates
from tasks.neighbours.similarity import top_neighbours

MAX_SEARCHED = 0.4  # share of titles compared with all titles; a search of all uses each product twice


def update_neighbours(
    points: Float32[np.ndarray, "titles dim"],
    k: int,
    origin: Int[np.ndarray, " titles"],
    earlier_points: Float32[np.ndarray, "earlier dim"],
    earlier_ids: Int[np.ndarray, "earlier k"],
    earlier_cosines: Float32[np.ndarray, "earlier k"],
) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns ids and cosines of the k nearest other titles of each title, or None if too many have changed.

    Args:
        points: Vectors of the titles, unit norm or zero.
        k: Number of neighbours of each title, in both nights.
        origin: Row of each title in the earlier night, -1 for new titles; the rows ascend, so that ties are
            broken in the same order.
        earlier_points: Vectors of the earlier night.
        earlier_ids, earlier_cosines: Neighbours of the earlier night, padded with -1 and 0.
    """
    is_kept = (origin >= 0) & (points == earlier_points[origin]).all(axis=1)
    kept, is_zero = np.flatnonzero(is_kept), ~points.any(axis=1)
    row_now = np.full(len(earlier_points) + 1, -1)  # the last entry is for the padding -1
    row_now[origin[kept]] = kept
    ids, cosines = empty_neighbours(len(points), k)
    ids[kept], cosines[kept] = row_now[earlier_ids[origin[kept]]], earlier_cosines[origin[kept]]
    has_lost = np.zeros(len(points), dtype=bool)
    has_lost[kept] = ((ids[kept] < 0) & (earlier_ids[origin[kept]] >= 0)).any(axis=1)
    searched, fresh = (np.flatnonzero(mask & ~is_zero) for mask in (has_lost | ~is_kept, ~is_kept))
    if len(searched) > MAX_SEARCHED * len(points):
        return None
    merged = np.flatnonzero(~has_lost & is_kept & ~is_zero)
    new_ids, new_cosines = top_neighbours(points[merged], points[fresh], k)
    is_full = ids[merged, -1] >= 0
    merged, new_ids = (
        each[~is_full | (new_cosines[:, 0] >= cosines[merged, -1])] for each in (merged, new_ids)
    )
    candidates = np.hstack([ids[merged], np.append(fresh, -1)[new_ids]])
    ids[merged], cosines[merged] = order_candidates(points[merged], points, k, candidates)
    nearest, values = top_neighbours(points[searched], points, k + 1)
    is_self = nearest == searched[:, None]
    is_self[~is_self.any(axis=1), -1] = True  # k equal vectors with lower ids precede the title itself
    ids[searched], cosines[searched] = (each[~is_self].reshape(-1, k) for each in (nearest, values))
    return ids, cosines
