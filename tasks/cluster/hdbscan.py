"""HDBSCAN: density without an eps, the modern reference. Stands on scikit-learn, and compares every title with every other.

On unit vectors the Euclidean distance grows with the cosine distance, √(2 - 2 cos), and density is what counts, so both
give the same hierarchy up to its scale.

References: R. Campello, D. Moulavi, J. Sander, Density-based clustering based on hierarchical density estimates, PAKDD 2013.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import Partition, finish
from tasks.form import FORM
from tasks.neighbours.similarity import known_rows


@dataclass(frozen=True, kw_only=True)
class HDBSCAN:
    """HDBSCAN: dense groups at whatever scale, the rest noise; the same for every seed. Slow beyond some 20,000 titles."""

    name: Literal["hdbscan"] = "hdbscan"
    minimum_size: int = field(default=5, metadata={"description": "Fewest titles of a cluster.", "ge": 2})
    min_samples: int | None = field(default=None, metadata={"description": "Titles whose distance says how dense a place is; more gives noise. Empty is minimum_size.", "ge": 1})
    neighbours: int = field(default=25, metadata={"description": "Nearest titles kept of each title, for the map; the clusters do not need them.", "ge": 1})
    __pydantic_config__: ClassVar = FORM

    def cluster(self, vectors: np.ndarray, neighbours: Neighbours, *, seed: int) -> Partition:
        """Clusters of the titles.

        Args:
            vectors: float32, shape (titles, dim), unit norm or zero; a zero row is noise.
            neighbours: Not looked at.
            seed: Nothing is drawn.

        Raises:
            ModuleNotFoundError: scikit-learn is not installed.
        """
        from sklearn.cluster import HDBSCAN as Solver

        known = known_rows(vectors)
        labels = np.full(len(vectors), -1, dtype=np.int64)
        points = vectors[known].astype(np.float64)
        if len(points) >= max(self.minimum_size, self.min_samples or 0):
            if (points == points[0]).all():  # no distance at all: one group, of which scikit-learn makes noise
                labels[known] = 0
            else:
                solver = Solver(min_cluster_size=self.minimum_size, min_samples=self.min_samples, copy=True)  # pyright: ignore[reportArgumentType]
                labels[known] = solver.fit_predict(points)
        return finish(labels, known, minimum_size=self.minimum_size, remedy="lower minimum_size or min_samples.")
