"""DBSCAN by matrix products: dense regions become clusters, the rest is noise.

A title is *core* when at least ``min_samples`` titles, itself included, are within cosine distance eps of it.
Clusters are the connected components of core titles within eps of each other. Another title within eps of a
core title belongs to the cluster of its nearest core title, equal ones by the lowest id (the original leaves
that to the order of rows). Core titles, their components and noise are unique, hence equal to scikit-learn's.
Tiles of all pairs are computed once, and memory grows with the titles, not with the pairs.

Eps is suggested at the knee of the k-distance curve. In many dimensions distances grow without a clear knee:
there one cluster holds nearly all titles (docs/log). Raising eps from 0, titles first join small groups,
then these percolate into one. Between the two lies the eps at which the most titles are in a cluster other
than the largest.

References: M. Ester, H.-P. Kriegel, J. Sander, X. Xu, A density-based algorithm for discovering clusters in
large spatial databases with noise, KDD 1996; for the knee, V. Satopää, J. Albrecht, D. Irwin, B. Raghavan,
Finding a "kneedle" in a haystack, ICDCSW 2011.
"""

from typing import Literal

import numpy as np

from storage.formats.clustering import Density
from storage.shapes import Float, Int
from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import COLLAPSED_SHARE, Partition, finish
from tasks.form import configurable, setting
from tasks.neighbours.rescoring import DECIMALS, exact_cosines, pairs_within
from tasks.neighbours.similarity import nonzero_rows

KEPT = 1 << 21  # pairs that wait, 8 bytes each, before they are joined
ROUNDING = 1e-9  # so that float32's last digit does not exclude the title at eps itself
TRIED = 40  # points of the curve at which the components are computed


@configurable
class DBSCAN:
    """DBSCAN: groups of titles in dense regions, the rest noise; the same for every seed."""

    name: Literal["dbscan"] = "dbscan"
    neighbours: int = setting(25, "Nearest titles kept of each title; eps is suggested from them.", ge=1)
    eps: float | None = setting(
        None,
        "Greatest cosine distance (1 - cosine) of two near titles; empty suggests it from the "
        "k-distance curve.",
        ge=0,
        le=2,
    )
    min_samples: int = setting(5, "Titles within eps, itself included, that make a title core.", ge=1)

    def __post_init__(self) -> None:
        if self.eps is None:
            check_reach(self.neighbours, self.min_samples)

    def cluster(self, vectors: np.ndarray, neighbours: Neighbours, *, seed: int) -> Partition:
        """Clusters of the titles; the neighbours suggest eps, the seed is not used."""
        eps = suggest_eps(neighbours, self.min_samples) if self.eps is None else self.eps
        labels, known = density_clusters(vectors, eps, self.min_samples), nonzero_rows(vectors)
        note = f"eps {eps:.4g} was suggested by the k-distance curve." if self.eps is None else ""
        remedy = f"lower eps (now {eps:.4g}) or raise min_samples."
        density = Density(eps=eps, min_samples=self.min_samples)
        return finish(labels, known, minimum_size=1, note=note, remedy=remedy, density=density)


def density_clusters(
    vectors: Float[np.ndarray, "titles dim"], eps: float, min_samples: int
) -> Int[np.ndarray, " titles"]:
    """Cluster of each title, int64, numbered by the first core title; -1 is noise."""
    labels = np.full(len(vectors), -1, dtype=np.int64)
    known = np.flatnonzero(nonzero_rows(vectors))
    points = vectors[known]
    links = Links(len(points), max(min_samples, 1))
    for top, left, rows, columns in pairs_within(points, 1.0 - eps):
        for first, near in ((top, rows), (left, columns))[: 1 + (left > top)]:
            found = np.bincount(near)
            links.counts[first : first + len(found)] += found
        links.add(rows + top, columns + left)
    core, components, (border, near) = links.finish()
    labels[known[core]] = components[core]
    if len(border):
        cosines = exact_cosines(points[border], points[near])
        order = np.lexsort((near, -np.round(cosines, DECIMALS), border))
        border, near = border[order], near[order]
        firsts = np.flatnonzero(np.diff(border, prepend=-1))
        labels[known[border[firsts]]] = components[near[firsts]]
    return labels


class Links:
    """Pairs of near titles, reduced as they come: at most ``KEPT`` wait, and those of titles not core yet.

    A title that is core stays core, so a pair of two such joins their components at once and is forgotten.
    What is left has an end with fewer than min_samples pairs so far: min_samples times the titles, whatever
    eps is.
    """

    def __init__(self, titles: int, min_samples: int) -> None:
        self.counts = np.zeros(titles, dtype=np.int64)
        self.components = np.arange(titles, dtype=np.int32)
        self.min_samples = min_samples
        self.pending = [np.zeros((2, 0), np.int32)]
        self.waiting, self.most = 0, KEPT

    def add(self, left: np.ndarray, right: np.ndarray) -> None:
        """Takes pairs of near titles, each once or twice; a title and itself is no pair."""
        self.pending.append(np.stack([left, right])[:, left != right].astype(np.int32))
        self.waiting += self.pending[-1].shape[1]
        if self.waiting > self.most:
            self._reduce()
            self.most = 2 * self.waiting + KEPT

    def _reduce(self) -> np.ndarray:
        core = self.counts >= self.min_samples
        pairs = np.concatenate(self.pending, axis=1)
        joined = core[pairs].all(axis=0)
        self.components = merge(self.components, *self.components[pairs[:, joined]])
        self.pending = [pairs[:, ~joined]]
        self.waiting = self.pending[0].shape[1]
        return core

    def finish(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Core titles (bool); each title's component; pairs of a title not core and a core one near it."""
        core = self._reduce()
        either = np.concatenate([self.pending[0], self.pending[0][::-1]], axis=1)
        return core, self.components, either[:, ~core[either[0]] & core[either[1]]]


def merge(
    components: Int[np.ndarray, " titles"], left: Int[np.ndarray, " pairs"], right: Int[np.ndarray, " pairs"]
) -> Int[np.ndarray, " titles"]:
    """Components after joining pairs of them; each is named by its lowest member."""
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


def check_reach(kept: int, min_samples: int) -> int:
    """Column of the neighbours that min_samples reads; ValueError where fewer are kept."""
    if kept < (needed := max(min_samples - 1, 1)):
        why = f"min_samples {min_samples} needs {needed} neighbours of each title to suggest eps"
        raise ValueError(f"{why}, but {kept} are kept. Raise neighbours, or set eps.")
    return needed - 1


def k_distance_curve(neighbours: Neighbours, min_samples: int) -> Float[np.ndarray, " found"]:
    """Cosine distance of each title to its (min_samples - 1)-th nearest, ascending; fewer: left out."""
    column = check_reach(neighbours.ids.shape[1], min_samples)
    found = neighbours.ids[:, column] >= 0
    return np.sort(1.0 - neighbours.cosines[found, column].astype(np.float64))


def suggest_eps(neighbours: Neighbours, min_samples: int) -> float:
    """The knee; where one cluster holds most titles there, the eps of the most titles outside the largest.

    Clusters are read from pairs of core titles of which one is among the nearest of the other.
    """
    curve = k_distance_curve(neighbours, min_samples)
    if not len(curve):
        return 0.0
    knee = knee_of(curve)
    tried = np.unique(np.append(np.quantile(curve, np.linspace(0.01, 1, TRIED)) + ROUNDING, knee))
    clustered, largest = sizes_at(neighbours, min_samples, tried)
    if largest[np.searchsorted(tried, knee)] <= COLLAPSED_SHARE * len(curve) or (clustered == largest).all():
        return knee
    return float(np.clip(tried[int((clustered - largest).argmax())], 0, 2))


def sizes_at(
    neighbours: Neighbours, min_samples: int, tried: Float[np.ndarray, " tried"]
) -> tuple[Int[np.ndarray, " tried"], Int[np.ndarray, " tried"]]:
    """Core titles, and those of the largest component, at each eps, ascending."""
    titles, width = neighbours.ids.shape
    column = check_reach(width, min_samples)
    distances = 1.0 - neighbours.cosines.astype(np.float64)
    reach = np.where(neighbours.ids[:, column] >= 0, distances[:, column], np.inf)
    left = np.repeat(np.arange(titles, dtype=np.int32), width)
    right = neighbours.ids.reshape(-1).astype(np.int32)
    linking = np.maximum(np.maximum(reach[left], reach[right]), distances.reshape(-1))  # eps of the pair
    step = np.searchsorted(tried, np.where(right >= 0, linking, np.inf))
    order = np.argsort(step, kind="stable")
    ends = np.searchsorted(step[order], np.arange(len(tried)), side="right")
    components = np.arange(titles, dtype=np.int32)
    clustered, largest = np.zeros(len(tried), dtype=np.int64), np.zeros(len(tried), dtype=np.int64)
    for number, own in enumerate(np.split(order, ends)[:-1]):
        components = merge(components, components[left[own]], components[right[own]])
        core = reach <= tried[number]
        clustered[number] = core.sum()
        largest[number] = np.bincount(components[core], minlength=1).max()
    return clustered, largest


def knee_of(curve: Float[np.ndarray, " found"]) -> float:
    """The point of the ascending curve farthest below the straight line from its first to its last point.

    Up to the knee distances grow slowly (titles inside groups), after it fast (titles on their own). Both
    axes are scaled to 0..1. A curve that lies nowhere below the line has no knee: its median is taken.
    """
    height = curve[-1] - curve[0]
    below = np.linspace(0, 1, len(curve)) - (curve - curve[0]) / (height or 1.0)
    knee = int(below.argmax()) if height > 0 and below.max() > 0 else len(curve) // 2
    return float(np.clip(curve[knee] + ROUNDING, 0, 2))
