"""DBSCAN by matrix products: dense regions become clusters, the rest is noise.

A title is *core* when at least ``min_samples`` titles, itself included, are within cosine distance eps (1 - cosine) of
it. Clusters are the connected components of core titles within eps of each other. Another title within eps of a core
title belongs to the cluster of its nearest core title, equal ones by the lowest id; the original leaves that to the
order of the rows. The rest is noise. Core titles, their components and noise are unique, hence equal to scikit-learn's.

Tiles of all pairs are computed twice, once to count and once to link; nothing of the size of the pairs is kept, so
memory grows with the titles alone.

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
from tasks.neighbours.radius import ROUNDING, count_within, exact_cosines, tiles_within
from tasks.neighbours.similarity import known_rows, top_neighbours


@dataclass(frozen=True, kw_only=True)
class DBSCAN:
    """DBSCAN: groups of titles in dense places, the rest noise; the same for every seed."""

    name: Literal["dbscan"] = "dbscan"
    neighbours: int = field(default=25, metadata={"description": "Nearest titles kept of each title, for the map and for suggesting eps.", "ge": 1})
    eps: float | None = field(
        default=None, metadata={"description": "Greatest cosine distance (1 - cosine) of two near titles; empty suggests it from the k-distance curve.", "ge": 0, "le": 2}
    )
    min_samples: int = field(default=5, metadata={"description": "Titles within eps, itself included, that make a title core.", "ge": 1})
    __pydantic_config__: ClassVar = {"extra": "forbid"}

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
    minimum_cosine = 1.0 - eps
    counts = count_within(vectors, minimum_cosine)
    core = np.flatnonzero(counts >= max(min_samples, 1))
    if not len(core):
        return labels
    components = np.arange(len(core), dtype=np.int32)
    for top, left, mask in tiles_within(vectors[core], minimum_cosine):
        mask &= components[top : top + mask.shape[0], None] != components[None, left : left + mask.shape[1]]
        rows, columns = np.nonzero(mask)
        if len(rows):
            components = merge(components, components[top + rows], components[left + columns])
    labels[core] = components
    others = np.flatnonzero((counts > 0) & (labels < 0))
    nearest = top_neighbours(vectors[others], vectors[core], 1)[0][:, 0]
    reached = exact_cosines(torch.from_numpy(vectors[others]), torch.from_numpy(vectors[core[nearest]])).numpy() >= minimum_cosine - ROUNDING
    labels[others[reached]] = components[nearest[reached]]
    return labels


def merge(components: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Components after joining pairs of them; each is named by its lowest member.

    Args:
        components: int32, shape (nodes,), the lowest member of each node's component.
        left: Components, shape (pairs,).
        right: Components to join them with, shape (pairs,).
    """
    pairs = np.unique(np.stack([np.minimum(left, right), np.maximum(left, right)]), axis=1)
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
