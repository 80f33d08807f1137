"""k-means: the plain comparator that is told the number of clusters. Every title is in one; there is no noise.

On unit vectors the squared distance is 2 - 2 cos, so scikit-learn's k-means groups by cosine.

References: S. Lloyd, Least squares quantization in PCM, 1982; D. Arthur, S. Vassilvitskii, k-means++, SODA 2007.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import Partition, finish
from tasks.form import FORM
from tasks.neighbours.similarity import known_rows


@dataclass(frozen=True, kw_only=True)
class KMeans:
    """k-means: as many groups as it is told, no noise; to compare with."""

    name: Literal["k_means"] = "k_means"
    clusters: int | None = field(default=None, metadata={"description": "Number of clusters; empty is the square root of the number of titles.", "ge": 1})
    neighbours: int = field(default=25, metadata={"description": "Nearest titles kept of each title, for the map; the clusters do not need them.", "ge": 1})
    starts: int = field(default=3, metadata={"description": "Times it starts from other centres; the best is kept.", "ge": 1})
    iterations: int = field(default=50, metadata={"description": "Most passes over all titles.", "ge": 1})
    minimum_size: int = field(default=3, metadata={"description": "Smaller clusters count as noise.", "ge": 1})
    __pydantic_config__: ClassVar = FORM

    def cluster(self, vectors: np.ndarray, neighbours: Neighbours, *, seed: int) -> Partition:
        """Clusters of the titles.

        Args:
            vectors: float32, shape (titles, dim), unit norm or zero; a zero row is noise.
            neighbours: Not looked at.
            seed: Draws the first centres.

        Raises:
            ModuleNotFoundError: scikit-learn is not installed.
        """
        from sklearn.cluster import KMeans as Solver

        known = known_rows(vectors)
        labels = np.full(len(vectors), -1, dtype=np.int64)
        points = vectors[known]
        passes = 0
        if len(points):
            count = min(self.clusters or round(math.sqrt(len(points))), len(np.unique(points, axis=0)))
            solver = Solver(count, n_init=self.starts, max_iter=self.iterations, random_state=seed)  # pyright: ignore[reportArgumentType]
            labels[known] = solver.fit_predict(points)
            passes = int(solver.n_iter_)
        return finish(labels, known, minimum_size=self.minimum_size, iterations=passes, remedy="raise clusters.")
