"""Clusters titles by k-means on SimHash signatures instead of vectors, for very many clusters.

A title is assigned to the centre whose signature has the smallest Hamming distance to the signature of the
title (tasks/neighbours/simhash.py). A centre is the normalized mean of the titles that are assigned to it.
With 256 bits, the estimate of a cosine of .7 has a standard error of .06. The strategy is for comparison: it
shows how much quality signatures lose, and how much time they save.

References: M. Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002.
"""

from typing import ClassVar, Literal

import numpy as np

from storage.shapes import Float, Int
from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import Partition, build_partition
from tasks.form import configurable, setting
from tasks.neighbours.simhash import draw_planes, hamming, signatures
from tasks.neighbours.similarity import nonzero_rows

TITLES_PER_CHUNK = 256  # titles compared at once; 2.5 million 16-bit distances (5 MiB) for 10,000 centres
MAX_SPREAD_CENTRES = 512  # up to this number, initial centres are drawn far apart; more are drawn at random


@configurable
class SimHashClusters:
    """Strategy: k-means on SimHash signatures with a preset number of clusters, for comparison."""

    uses_seed: ClassVar[bool] = True
    name: Literal["simhash"] = "simhash"
    clusters: int = setting(10_000, "Initial number of clusters; empty clusters are dropped.", ge=1)
    bits: int = setting(
        256,
        "Bits of a signature, a multiple of 64; more bits are more accurate.",
        ge=64,
        le=8_192,
        multiple_of=64,
    )
    iterations: int = setting(10, "Maximum number of passes over all titles; fewer if nothing changes.", ge=1)
    neighbours: int = setting(25, "Number of nearest titles of each title, for the map.", ge=1)
    minimum_size: int = setting(3, "Minimum number of titles of a cluster; smaller clusters are noise.", ge=1)

    def cluster(self, vectors: np.ndarray, neighbours: Neighbours, *, seed: int) -> Partition:
        """Clusters the titles. ``neighbours`` are ignored."""
        has_vector, clusters, iterations = nonzero_rows(vectors), np.full(len(vectors), -1, dtype=np.int64), 0
        points = vectors[has_vector]
        if len(points):
            generator = np.random.default_rng(seed)
            planes = draw_planes(points.shape[1], self.bits, generator)
            title_signatures = signatures(points, planes)
            centres = draw_centres(points, self.clusters, generator)
            ids, has_changed = np.full(len(points), -1, dtype=np.int64), True
            while has_changed and iterations < self.iterations:
                old_ids, ids = ids, nearest_centres(title_signatures, signatures(centres, planes))
                centres = unit_means(points, ids, centres)
                has_changed, iterations = bool((old_ids != ids).any()), iterations + 1
            clusters[has_vector] = ids
        return build_partition(
            clusters,
            has_vector,
            minimum_size=self.minimum_size,
            iterations=iterations,
            remedy="raise clusters or bits.",
        )


def draw_centres(
    points: Float[np.ndarray, "titles dim"], count: int, generator: np.random.Generator
) -> Float[np.ndarray, "centres dim"]:
    """Draws up to ``count`` titles as initial centres.

    Up to MAX_SPREAD_CENTRES centres are drawn far apart: the next centre is the title that is farthest from
    all previous centres. If ``count`` is larger, all centres are drawn at random.
    """
    count = min(count, len(points))
    if count > MAX_SPREAD_CENTRES:
        return points[np.sort(generator.permutation(len(points))[:count])]
    centre_rows = [int(generator.integers(len(points)))]
    best_cosines = points @ points[centre_rows[0]]  # cosine of each title with its nearest centre so far
    while len(centre_rows) < count and best_cosines.min() < 1 - 1e-6:
        centre_rows.append(int(best_cosines.argmin()))
        np.maximum(best_cosines, points @ points[centre_rows[-1]], out=best_cosines)
    return points[centre_rows]


def nearest_centres(title_signatures: np.ndarray, centres: np.ndarray) -> Int[np.ndarray, " titles"]:
    """Returns the nearest centre of each title by Hamming distance. Signatures are uint64 (rows, words)."""
    centre_ids = np.empty(len(title_signatures), dtype=np.int64)
    for start in range(0, len(title_signatures), TITLES_PER_CHUNK):
        part = slice(start, start + TITLES_PER_CHUNK)
        centre_ids[part] = hamming(title_signatures[part], centres).argmin(axis=1)
    return centre_ids


def unit_means(
    points: Float[np.ndarray, "titles dim"], clusters: Int[np.ndarray, " titles"], centres: np.ndarray
) -> Float[np.ndarray, "centres dim"]:
    """Returns the mean vector of each cluster, normalized to unit norm, float32.

    A cluster without titles, or with a zero mean, keeps its previous centre (``centres``).
    """
    sums = np.zeros(centres.shape, dtype=np.float64)
    order = np.argsort(clusters, kind="stable")
    run_starts = np.flatnonzero(np.diff(clusters[order], prepend=-1))
    sums[clusters[order[run_starts]]] = np.add.reduceat(points[order], run_starts, axis=0, dtype=np.float64)
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.where(norms > 1e-9, sums / np.maximum(norms, 1e-9), centres).astype(np.float32)
