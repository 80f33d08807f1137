"""Updates the nearest titles of an earlier night, with the same result as an exact search of all titles.

Let K be the titles whose vectors are equal to those of the earlier night, bit for bit, and F all other
titles. If the earlier neighbours of a title of K are all in K, they still are its k nearest titles within K.
Then only these neighbours and its k nearest titles within F are candidates tonight. The best k candidates are
selected by float64 cosines, as in every search. Titles of F, and titles of K with an earlier neighbour that
is not in K, are compared with all titles.
"""

import numpy as np

from storage.shapes import Float32, Int
from tasks.neighbours.rescoring import empty_neighbours, order_candidates
from tasks.neighbours.similarity import top_neighbours

# Maximum share of titles that are compared with all titles. For a larger share, a search of all pairs is
# faster, because it uses each product for both titles of the pair.
MAX_SEARCHED = 0.4


def update_neighbours(
    points: Float32[np.ndarray, "titles dim"],
    k: int,
    earlier_rows: Int[np.ndarray, " titles"],
    earlier_points: Float32[np.ndarray, "earlier dim"],
    earlier_ids: Int[np.ndarray, "earlier k"],
    earlier_cosines: Float32[np.ndarray, "earlier k"],
) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns the ids and cosines of the k nearest other titles of each title; None if too many have changed.

    Args:
        points: Vectors of tonight's titles, unit norm or zero.
        k: Number of neighbours of each title, in both nights.
        earlier_rows: Row in the earlier night of each title of tonight, -1 for new titles. The rows must
            ascend, so that ties are broken in the same order.
        earlier_points: Vectors of the titles of the earlier night.
        earlier_ids: Nearest titles of each title of the earlier night, padded with -1.
        earlier_cosines: Cosines of ``earlier_ids``, padded with 0.
    """
    is_equal = (earlier_rows >= 0) & (points == earlier_points[earlier_rows]).all(axis=1)
    equal_rows, is_nonzero = np.flatnonzero(is_equal), points.any(axis=1)
    rows_before = earlier_rows[equal_rows]
    row_tonight = np.full(len(earlier_points) + 1, -1)  # the last entry is for the padding -1
    row_tonight[rows_before] = equal_rows
    ids, cosines = empty_neighbours(len(points), k)
    ids[equal_rows], cosines[equal_rows] = row_tonight[earlier_ids[rows_before]], earlier_cosines[rows_before]
    has_lost_neighbour = np.zeros(len(points), dtype=bool)
    has_lost_neighbour[equal_rows] = ((ids[equal_rows] < 0) & (earlier_ids[rows_before] >= 0)).any(axis=1)
    changed_rows = np.flatnonzero(~is_equal & is_nonzero)
    searched_rows = np.flatnonzero((has_lost_neighbour | ~is_equal) & is_nonzero)
    if len(searched_rows) > MAX_SEARCHED * len(points):
        return None
    updated_rows = np.flatnonzero(~has_lost_neighbour & is_equal & is_nonzero)
    changed_ids, changed_cosines = top_neighbours(points[updated_rows], points[changed_rows], k)
    may_change = (ids[updated_rows, -1] < 0) | (changed_cosines[:, 0] >= cosines[updated_rows, -1])
    updated_rows, changed_ids = updated_rows[may_change], changed_ids[may_change]
    candidates = np.hstack([ids[updated_rows], np.append(changed_rows, -1)[changed_ids]])
    ids[updated_rows], cosines[updated_rows] = order_candidates(points[updated_rows], points, k, candidates)
    nearest_ids, nearest_cosines = top_neighbours(points[searched_rows], points, k + 1)
    is_self = nearest_ids == searched_rows[:, None]
    is_self[~is_self.any(axis=1), -1] = True  # k equal vectors with lower ids precede the title itself
    ids[searched_rows] = nearest_ids[~is_self].reshape(-1, k)
    cosines[searched_rows] = nearest_cosines[~is_self].reshape(-1, k)
    return ids, cosines
