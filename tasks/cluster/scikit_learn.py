"""Clusters titles by HDBSCAN or k-means of scikit-learn.

Both use Euclidean distances. On unit vectors, the squared distance is 2 - 2 cos, so they cluster by cosine.
HDBSCAN determines the number of clusters, and compares all pairs of titles. k-means takes a preset number and
has no noise.

References: R. Campello, D. Moulavi, J. Sander, Density-based clustering based on hierarchical density
estimates, PAKDD 2013; S. Lloyd, Least squares quantization in PCM, 1982; D. Arthur, S. Vassilvitskii,
k-means++, SODA 2007.
"""

import math
from typing import Literal

import numpy as np

from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import Partition, finish
from tasks.form import configurable, setting
from tasks.neighbours.similarity import nonzero_rows


@configurable
class HDBSCAN:
    """Strategy: clusters titles by HDBSCAN, which finds dense groups at any scale.

    Slow for more than 20,000 titles.
    """

    name: Literal["hdbscan"] = "hdbscan"
    minimum_size: int = setting(5, "Minimum number of titles of a cluster.", ge=2)
    min_samples: int | None = setting(
        None,
        "Number of nearest titles that determine the density; more give more noise. Empty: minimum_size.",
        ge=1,
    )
    neighbours: int = setting(25, "Number of nearest titles of each title, for the map.", ge=1)

    def cluster(self, vectors: np.ndarray, neighbours: Neighbours, *, seed: int) -> Partition:
        """Clusters the titles. ``neighbours`` and ``seed`` are ignored."""
        from sklearn.cluster import HDBSCAN as Solver

        has_vector = nonzero_rows(vectors)
        labels = np.full(len(vectors), -1, dtype=np.int64)
        points = vectors[has_vector].astype(np.float64)
        if len(points) >= max(self.minimum_size, self.min_samples or 0):
            if (
                points == points[0]
            ).all():  # one cluster if all vectors are equal; scikit-learn returns noise
                labels[has_vector] = 0
            else:
                solver = Solver(min_cluster_size=self.minimum_size, min_samples=self.min_samples, copy=True)  # pyright: ignore[reportArgumentType]
                labels[has_vector] = solver.fit_predict(points)
        remedy = "lower minimum_size or min_samples."
        return finish(labels, has_vector, minimum_size=self.minimum_size, remedy=remedy)


@configurable
class KMeans:
    """Strategy: clusters titles by k-means into a preset number of clusters, for comparison."""

    name: Literal["k_means"] = "k_means"
    clusters: int | None = setting(
        None, "Number of clusters; empty: the square root of the number of titles.", ge=1
    )
    neighbours: int = setting(25, "Number of nearest titles of each title, for the map.", ge=1)
    starts: int = setting(3, "Number of runs from different initial centres; the best is kept.", ge=1)
    iterations: int = setting(50, "Maximum number of passes over all titles.", ge=1)
    minimum_size: int = setting(3, "Minimum number of titles of a cluster; smaller clusters are noise.", ge=1)

    def cluster(self, vectors: np.ndarray, neighbours: Neighbours, *, seed: int) -> Partition:
        """Clusters the titles. ``neighbours`` are ignored."""
        from sklearn.cluster import KMeans as Solver

        has_vector, labels, passes = nonzero_rows(vectors), np.full(len(vectors), -1, dtype=np.int64), 0
        points = vectors[has_vector]
        if len(points):
            count = min(self.clusters or round(math.sqrt(len(points))), len(np.unique(points, axis=0)))
            solver = Solver(count, n_init=self.starts, max_iter=self.iterations, random_state=seed)  # pyright: ignore[reportArgumentType]
            labels[has_vector] = solver.fit_predict(points)
            passes = int(solver.n_iter_)
        size = self.minimum_size
        return finish(labels, has_vector, minimum_size=size, iterations=passes, remedy="raise clusters.")
