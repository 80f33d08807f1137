"""Clusters titles by DBSCAN: dense regions become clusters, and titles outside of them are noise.

Two titles are *near* if their cosine distance is at most eps. A title is *core* if at least ``min_samples``
titles, including itself, are near it. Clusters are the connected components of near core titles. A title that
is not core, but near a core title, belongs to the cluster of its nearest core title (in a tie, the core title
with the lowest id). All other titles are noise. The cosines of all pairs are computed in tiles, so that
memory is linear in the number of titles.

By default, eps is the knee of the k-distance curve, which consists of the sorted distances of titles to their
k-th neighbour. In high dimensions, the curve often has no clear knee, and one cluster would contain most
titles. Then, eps is the value that maximizes the number of clustered titles outside the largest cluster.

References: M. Ester, H.-P. Kriegel, J. Sander, X. Xu, A density-based algorithm for discovering clusters in
large spatial databases with noise, KDD 1996; for the knee, V. Satopää, J. Albrecht, D. Irwin, B. Raghavan,
Finding a "kneedle" in a haystack, ICDCSW 2011.
"""

from typing import ClassVar, Literal

import numpy as np

from storage.formats.clustering import Density
from storage.shapes import Float, Int
from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import COLLAPSED_SHARE, Partition, build_partition
from tasks.form import configurable, setting
from tasks.neighbours.rescoring import DECIMALS, exact_cosines, find_pairs_within
from tasks.neighbours.similarity import nonzero_rows

MAX_PENDING = 1 << 21  # maximum number of pairs, 8 bytes each, that are buffered until components are merged
ROUNDING = 1e-9  # added to eps so that rounding to float32 does not exclude a title at distance eps
EPS_CANDIDATES = 40  # number of values of eps on the curve for which components are computed


@configurable
class DBSCAN:
    """Strategy: clusters titles by DBSCAN; titles outside of dense regions are noise."""

    uses_seed: ClassVar[bool] = False
    name: Literal["dbscan"] = "dbscan"
    neighbours: int = setting(
        25, "Number of nearest titles of each title, from which eps is suggested.", ge=1
    )
    eps: float | None = setting(
        None,
        "Maximum cosine distance (1 - cosine) of near titles; if empty, it is suggested by the "
        "k-distance curve.",
        ge=0,
        le=2,
    )
    min_samples: int = setting(
        5, "Minimum number of titles within eps of a core title, including itself.", ge=1
    )

    def __post_init__(self) -> None:
        if self.eps is None:
            distance_column(self.neighbours, self.min_samples)

    def cluster(self, vectors: np.ndarray, neighbours: Neighbours, *, seed: int) -> Partition:
        """Clusters the titles. ``neighbours`` is used only to suggest eps, and ``seed`` is ignored."""
        eps = suggest_eps(neighbours, self.min_samples) if self.eps is None else self.eps
        return build_partition(
            density_clusters(vectors, eps, self.min_samples),
            nonzero_rows(vectors),
            minimum_size=1,
            note=f"eps {eps:.4g} was suggested by the k-distance curve." if self.eps is None else "",
            remedy=f"lower eps (now {eps:.4g}) or raise min_samples.",
            density=Density(eps=eps, min_samples=self.min_samples),
        )


def density_clusters(
    vectors: Float[np.ndarray, "titles dim"], eps: float, min_samples: int
) -> Int[np.ndarray, " titles"]:
    """Returns the DBSCAN cluster of each title, int64, or -1 for noise.

    The number of a cluster is the row of its first core title among the nonzero rows of ``vectors``.

    Args:
        vectors: Vectors of titles, unit norm or zero; titles with a zero vector are noise.
        eps: Maximum cosine distance of near titles.
        min_samples: Minimum number of titles near a core title, including itself.
    """
    clusters = np.full(len(vectors), -1, dtype=np.int64)
    nonzero_ids = np.flatnonzero(nonzero_rows(vectors))
    points = vectors[nonzero_ids]
    near_pairs = NearPairs(len(points), max(min_samples, 1))
    for first_row, first_column, rows, columns in find_pairs_within(points, 1.0 - eps):
        for first, near_ids in ((first_row, rows), (first_column, columns))[: 1 + (first_column > first_row)]:
            counts = np.bincount(near_ids)
            near_pairs.near_counts[first : first + len(counts)] += counts
        near_pairs.add(rows + first_row, columns + first_column)
    is_core, components, (border_ids, core_ids) = near_pairs.finish()
    clusters[nonzero_ids[is_core]] = components[is_core]
    if len(border_ids):
        cosines = exact_cosines(points[border_ids], points[core_ids])
        order = np.lexsort((core_ids, -np.round(cosines, DECIMALS), border_ids))
        border_ids, core_ids = border_ids[order], core_ids[order]
        run_starts = np.flatnonzero(np.diff(border_ids, prepend=-1))
        clusters[nonzero_ids[border_ids[run_starts]]] = components[core_ids[run_starts]]
    return clusters


class NearPairs:
    """Collects pairs of near titles in bounded memory and merges core titles into components.

    The caller updates ``near_counts``, the number of near titles found so far for each title. If both titles
    of a pair are core, their components are merged and the pair is dropped. Otherwise, the pair is buffered.
    Every buffered pair has a title that is not core, and such a title has fewer than min_samples pairs.
    Therefore, for any eps, at most min_samples pairs per title are buffered, in addition to ``MAX_PENDING``
    unprocessed pairs.
    """

    def __init__(self, title_count: int, min_samples: int) -> None:
        self.near_counts = np.zeros(title_count, dtype=np.int64)
        self.components = np.arange(title_count, dtype=np.int32)
        self.min_samples = min_samples
        self.pending = [np.zeros((2, 0), np.int32)]
        self.pending_count, self.max_pending = 0, MAX_PENDING

    def add(self, left: np.ndarray, right: np.ndarray) -> None:
        """Adds pairs of near titles. A pair may occur twice; a pair of a title with itself is ignored."""
        self.pending.append(np.stack([left, right])[:, left != right].astype(np.int32))
        self.pending_count += self.pending[-1].shape[1]
        if self.pending_count > self.max_pending:
            self._merge_pending()
            self.max_pending = 2 * self.pending_count + MAX_PENDING

    def _merge_pending(self) -> np.ndarray:
        """Merges the components of all pairs of core titles in the buffer; returns a mask of core titles."""
        is_core = self.near_counts >= self.min_samples
        pairs = np.concatenate(self.pending, axis=1)
        both_core = is_core[pairs].all(axis=0)
        self.components = merge_components(self.components, *self.components[pairs[:, both_core]])
        self.pending = [pairs[:, ~both_core]]
        self.pending_count = self.pending[0].shape[1]
        return is_core

    def finish(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the mask of core titles, the component of each title, and the border pairs.

        A border pair, a column of the array, consists of a title that is not core and a near core title.
        """
        is_core = self._merge_pending()
        directed_pairs = np.concatenate([self.pending[0], self.pending[0][::-1]], axis=1)
        is_border = ~is_core[directed_pairs[0]] & is_core[directed_pairs[1]]
        return is_core, self.components, directed_pairs[:, is_border]


def merge_components(
    components: Int[np.ndarray, " titles"], left: Int[np.ndarray, " pairs"], right: Int[np.ndarray, " pairs"]
) -> Int[np.ndarray, " titles"]:
    """Merges the components left[i] and right[i], for all i, and returns the component of each title.

    A component is identified by the lowest row number of its titles.
    """
    keys = np.minimum(left, right).astype(np.int64) * len(components) + np.maximum(left, right)
    pairs = np.divmod(np.unique(keys), max(len(components), 1))
    root = np.arange(len(components), dtype=components.dtype)
    while True:
        low, high = root[pairs[0]], root[pairs[1]]
        if (low == high).all():
            return root[components]
        np.minimum.at(root, np.maximum(low, high), np.minimum(low, high))
        while (root[root] != root).any():
            root = root[root]


def distance_column(available: int, min_samples: int) -> int:
    """Returns the column of ``Neighbours`` that determines whether a title is core: min_samples - 2.

    The title itself is one of the min_samples titles, and columns count from 0.

    Args:
        available: Number of columns of the ``Neighbours``.
        min_samples: Minimum number of titles near a core title, including itself.

    Raises:
        ValueError: ``available`` is too small.
    """
    if available < (needed := max(min_samples - 1, 1)):
        raise ValueError(
            f"min_samples {min_samples} needs {needed} neighbours of each title to suggest "
            f"eps, but {available} are kept. Raise neighbours, or set eps."
        )
    return needed - 1


def k_distance_curve(neighbours: Neighbours, min_samples: int) -> Float[np.ndarray, " titles"]:
    """Returns, for each title, the smallest eps with which it is core; the values are sorted, ascending.

    This eps is the distance to the (min_samples - 1)-th nearest title. Titles with fewer than
    min_samples - 1 neighbours are omitted.
    """
    column = distance_column(neighbours.ids.shape[1], min_samples)
    has_neighbour = neighbours.ids[:, column] >= 0
    return np.sort(1.0 - neighbours.cosines[has_neighbour, column].astype(np.float64))


def suggest_eps(neighbours: Neighbours, min_samples: int) -> float:
    """Suggests eps: the knee of the k-distance curve, unless one cluster would contain most titles.

    If it would, returns the eps that maximizes the number of core titles outside the largest cluster.
    Clusters are approximated: core titles are connected only with the core titles among their nearest titles.
    """
    curve = k_distance_curve(neighbours, min_samples)
    if not len(curve):
        return 0.0
    knee_eps = find_knee(curve)
    quantiles = np.quantile(curve, np.linspace(0.01, 1, EPS_CANDIDATES)) + ROUNDING
    candidates = np.unique(np.append(quantiles, knee_eps))
    core_counts, largest_sizes = component_sizes(neighbours, min_samples, candidates)
    largest_at_knee = largest_sizes[np.searchsorted(candidates, knee_eps)]
    if largest_at_knee <= COLLAPSED_SHARE * len(curve) or (core_counts == largest_sizes).all():
        return knee_eps
    return float(np.clip(candidates[int((core_counts - largest_sizes).argmax())], 0, 2))


def component_sizes(
    neighbours: Neighbours, min_samples: int, candidates: Float[np.ndarray, " candidates"]
) -> tuple[Int[np.ndarray, " candidates"], Int[np.ndarray, " candidates"]]:
    """Returns, for each candidate, the number of core titles and the size of the largest component.

    ``candidates`` has values of eps in ascending order.
    """
    title_count, neighbour_count = neighbours.ids.shape
    column = distance_column(neighbour_count, min_samples)
    distances = 1.0 - neighbours.cosines.astype(np.float64)
    # the smallest eps with which a title is core, and with which a pair of titles is connected
    core_eps = np.where(neighbours.ids[:, column] >= 0, distances[:, column], np.inf)
    left = np.repeat(np.arange(title_count, dtype=np.int32), neighbour_count)
    right = neighbours.ids.reshape(-1).astype(np.int32)
    pair_eps = np.maximum(np.maximum(core_eps[left], core_eps[right]), distances.reshape(-1))
    first_candidate = np.searchsorted(candidates, np.where(right >= 0, pair_eps, np.inf))
    order = np.argsort(first_candidate, kind="stable")
    ends = np.searchsorted(first_candidate[order], np.arange(len(candidates)), side="right")
    components = np.arange(title_count, dtype=np.int32)
    core_counts, largest_sizes = np.zeros((2, len(candidates)), dtype=np.int64)
    for number, pairs in enumerate(np.split(order, ends)[:-1]):
        components = merge_components(components, components[left[pairs]], components[right[pairs]])
        is_core = core_eps <= candidates[number]
        core_counts[number] = is_core.sum()
        largest_sizes[number] = np.bincount(components[is_core], minlength=1).max()
    return core_counts, largest_sizes


def find_knee(curve: Float[np.ndarray, " titles"]) -> float:
    """Returns the knee of an ascending curve: the value farthest below the line between its end points.

    First, both axes are scaled to the range from 0 to 1. If the curve is nowhere below the line, the median
    of the curve is returned.
    """
    height = curve[-1] - curve[0]
    depth = np.linspace(0, 1, len(curve)) - (curve - curve[0]) / (height or 1.0)
    knee_index = int(depth.argmax()) if height > 0 and depth.max() > 0 else len(curve) // 2
    return float(np.clip(curve[knee_index] + ROUNDING, 0, 2))
