"""DBSCAN by matrix products: dense regions become clusters, the rest is noise.

A title is *core* when at least ``min_samples`` titles, itself included, are within cosine distance eps (1 - cosine) of
it. Clusters are the connected components of core titles within eps of each other. Another title within eps of a core
title belongs to the cluster of its nearest core title, equal ones by the lowest id; the original leaves that to the
order of the rows. The rest is noise. Core titles, their components and noise are unique, hence equal to scikit-learn's.

Tiles of all pairs are computed once: near pairs are counted and joined as they come, and only those wait that may still
turn out not to be between core titles, so memory grows with the titles, not with the pairs.

References: M. Ester, H.-P. Kriegel, J. Sander, X. Xu, A density-based algorithm for discovering clusters in large
spatial databases with noise, KDD 1996.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import torch

from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import Partition, finish
from tasks.form import FORM
from tasks.neighbours.radius import exact_cosines, tiles_within
from tasks.neighbours.similarity import DECIMALS, known_rows

KEPT = 1 << 21  # pairs that wait, 8 bytes each, before they are joined


@dataclass(frozen=True, kw_only=True)
class DBSCAN:
    """DBSCAN: groups of titles in dense places, the rest noise; the same for every seed."""

    name: Literal["dbscan"] = "dbscan"
    neighbours: int = field(default=25, metadata={"description": "Nearest titles kept of each title, for the map and for suggesting eps.", "ge": 1})
    eps: float | None = field(
        default=None, metadata={"description": "Greatest cosine distance (1 - cosine) of two near titles; empty suggests it from the k-distance curve.", "ge": 0, "le": 2}
    )
    min_samples: int = field(default=5, metadata={"description": "Titles within eps, itself included, that make a title core.", "ge": 1})
    __pydantic_config__: ClassVar = FORM

    def cluster(self, vectors: np.ndarray, neighbours: Neighbours, *, seed: int) -> Partition:
        """Clusters of the titles.

        Args:
            vectors: float32, shape (titles, dim), unit norm or zero; a zero row is noise.
            neighbours: Nearest titles of each title, for suggesting eps.
            seed: Not used: there is nothing to draw.
        """
        eps = suggest_eps(neighbours, self.min_samples) if self.eps is None else self.eps
        labels = density_clusters(vectors, eps, self.min_samples)
        note = f"eps {eps:.4g} was suggested by the k-distance curve." if self.eps is None else ""
        return finish(labels, known_rows(vectors), minimum_size=1, note=note, remedy=f"lower eps (now {eps:.4g}) or raise min_samples.")


def density_clusters(vectors: np.ndarray, eps: float, min_samples: int) -> np.ndarray:
    """Cluster of each title, int64, shape (titles,), numbered by the first core title; -1 is noise."""
    labels = np.full(len(vectors), -1, dtype=np.int64)
    known = np.flatnonzero(known_rows(vectors))
    points = vectors[known]
    links = Links(len(points), max(min_samples, 1))
    for top, left, mask in tiles_within(points, 1.0 - eps):
        links.count(top, np.add.reduce(mask.view(np.uint8), axis=1, dtype=np.uint16))  # .08 ns an entry; count_nonzero takes .3
        if left > top:
            links.count(left, np.add.reduce(mask.view(np.uint8), axis=0, dtype=np.uint16))
        rows, columns = np.divmod(np.flatnonzero(mask), mask.shape[1])
        links.add(rows + top, columns + left)
    core, components, borders = links.finish()
    labels[known[core]] = components[core]
    if len(borders[0]):
        cosines = exact_cosines(torch.from_numpy(points[borders[0]]), torch.from_numpy(points[borders[1]])).numpy()
        order = np.lexsort((borders[1], -np.round(cosines, DECIMALS), borders[0]))
        own, nearest = borders[0][order], borders[1][order]
        firsts = np.flatnonzero(np.diff(own, prepend=-1))
        labels[known[own[firsts]]] = components[nearest[firsts]]
    return labels


class Links:
    """Pairs of near titles, boiled down as they come: at most ``KEPT`` wait, and those of titles that are not core yet.

    A title that is core stays core, so a pair of two such joins their components at once and is forgotten. What is left
    has an end with fewer than min_samples pairs so far: min_samples times the titles, whatever eps is.

    Args:
        titles: Number of titles.
        min_samples: Titles within eps, itself included, that make a title core.
    """

    def __init__(self, titles: int, min_samples: int) -> None:
        self.counts = np.zeros(titles, dtype=np.int64)
        self.components = np.arange(titles, dtype=np.int32)
        self.min_samples = min_samples
        self.pending: list[tuple[np.ndarray, np.ndarray]] = []
        self.waiting, self.most = 0, KEPT

    def count(self, first: int, found: np.ndarray) -> None:
        """Adds near titles found of the titles from ``first`` on."""
        self.counts[first : first + len(found)] += found

    def add(self, left: np.ndarray, right: np.ndarray) -> None:
        """Takes pairs of near titles, each once or twice; a title and itself is no pair."""
        kept = left != right
        self.pending.append((left[kept].astype(np.int32), right[kept].astype(np.int32)))
        self.waiting += len(self.pending[-1][0])
        if self.waiting > self.most:
            self._boil_down()
            self.most = 2 * self.waiting + KEPT

    def _boil_down(self) -> None:
        core = self.counts >= self.min_samples
        left, right = (np.concatenate([pair[side] for pair in self.pending]) if self.pending else np.zeros(0, np.int32) for side in (0, 1))
        self.components = merge(self.components, *(self.components[side[core[left] & core[right]]] for side in (left, right)))
        open_ = ~(core[left] & core[right])
        self.pending = [(left[open_], right[open_])]
        self.waiting = int(open_.sum())

    def finish(self) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Core titles (bool), the component of each title, and pairs of a title that is not core with a core one near it."""
        self._boil_down()
        core = self.counts >= self.min_samples
        left, right = self.pending[0]
        there, here = core[right] & ~core[left], core[left] & ~core[right]
        return core, self.components, (np.concatenate([left[there], right[here]]), np.concatenate([right[there], left[here]]))


def merge(components: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Components after joining pairs of them; each is named by its lowest member.

    Args:
        components: int32, shape (nodes,), the lowest member of each node's component.
        left: Components, shape (pairs,).
        right: Components to join them with, shape (pairs,).
    """
    keys = np.minimum(left, right).astype(np.int64) * len(components) + np.maximum(left, right)
    keys.sort()
    pairs = np.divmod(keys[np.flatnonzero(np.diff(keys, prepend=-1))], max(len(components), 1))
    root = np.arange(len(components), dtype=components.dtype)
    while True:
        low, high = root[pairs[0]], root[pairs[1]]
        if (low == high).all():
            return root[components]
        np.minimum.at(root, np.maximum(low, high), np.minimum(low, high))
        while (root[root] != root).any():
            root = root[root]


def k_distance_curve(neighbours: Neighbours, min_samples: int) -> np.ndarray:
    """Cosine distance of each title to its (min_samples - 1)-th nearest, ascending; titles that have fewer left out.

    Raises:
        ValueError: Fewer neighbours were found than min_samples asks for.
    """
    place = max(min_samples - 1, 1) - 1
    if place >= neighbours.ids.shape[1]:
        kept = neighbours.ids.shape[1]
        raise ValueError(f"min_samples {min_samples} needs {place + 1} neighbours of each title to suggest eps, but {kept} are kept. Raise neighbours, or set eps.")
    found = neighbours.ids[:, place] >= 0
    return np.sort(1.0 - neighbours.cosines[found, place].astype(np.float64))


def suggest_eps(neighbours: Neighbours, min_samples: int) -> float:
    """The knee of the k-distance curve: its point farthest below the straight line from its first to its last point.

    Up to the knee distances grow slowly (titles inside groups), after it fast (titles on their own). Both axes are
    scaled to 0..1. A curve that lies nowhere below the line has no knee: its median is taken.

    References: V. Satopää, J. Albrecht, D. Irwin, B. Raghavan, Finding a "kneedle" in a haystack, ICDCSW 2011.
    """
    curve = k_distance_curve(neighbours, min_samples)
    if not len(curve):
        return 0.0
    height = curve[-1] - curve[0]
    below = np.linspace(0, 1, len(curve)) - (curve - curve[0]) / (height or 1.0)
    knee = int(below.argmax()) if height > 0 and below.max() > 0 else len(curve) // 2
    return float(np.clip(curve[knee] + 1e-9, 0, 2))  # float32's last digit must not leave the knee itself outside
