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

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
import torch

from tasks.cluster.components import Links
from tasks.cluster.eps import check_reach, suggest_eps
from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import Density, Partition, finish
from tasks.form import FORM
from tasks.neighbours.radius import exact_cosines, pairs_within
from tasks.neighbours.settling import DECIMALS
from tasks.neighbours.similarity import known_rows


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

    def __post_init__(self) -> None:
        if self.eps is None:
            check_reach(self.neighbours, self.min_samples)

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
        partition = finish(labels, known_rows(vectors), minimum_size=1, note=note, remedy=f"lower eps (now {eps:.4g}) or raise min_samples.")
        return replace(partition, density=Density(eps=eps, min_samples=self.min_samples))


def density_clusters(vectors: np.ndarray, eps: float, min_samples: int) -> np.ndarray:
    """Cluster of each title, int64, shape (titles,), numbered by the first core title; -1 is noise."""
    labels = np.full(len(vectors), -1, dtype=np.int64)
    known = np.flatnonzero(known_rows(vectors))
    points = vectors[known]
    links = Links(len(points), max(min_samples, 1))
    for top, left, rows, columns in pairs_within(points, 1.0 - eps):
        links.count(top, np.bincount(rows))
        if left > top:
            links.count(left, np.bincount(columns))
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
