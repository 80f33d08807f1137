"""Splits large clusters into subclusters by the meaning of their titles.

The titles of a cluster are broadcast in a similar way, but may have different subjects: a cluster "Sport"
with 800 titles includes cycling. To separate the subjects, the mean of the cluster is subtracted from the
title vectors and from the sentence vectors, both are concatenated with equal weight, and the clustering
strategy is applied to the result, with fewer neighbours than for the complete guide, which gives more and
purer subclusters (52 instead of 25 in "Sport"). A constant component is appended to each vector. It maps a
cosine c to (1 + c) / 2, so that thresholds for the complete guide remain suitable.
"""

import numpy as np

from storage.arrays import unit_rows
from storage.shapes import Float, Int
from tasks.cluster import DBSCAN, Clusterer
from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import number_by_size, titles_by_cluster
from tasks.neighbours.index import SearchSettings

MIN_SPLIT_SIZE = 60  # minimum number of titles of a cluster that is split
MIN_SUBCLUSTER_SIZE = 5  # minimum number of titles of a subcluster
MAX_NEIGHBOURS = 12  # maximum number of neighbours of a title in a cluster that is split


def split_clusters(
    strategy: Clusterer,
    vectors: Float[np.ndarray, "titles dim"],
    clusters: Int[np.ndarray, " titles"],
    sentence_vectors: Float[np.ndarray, "titles features"] | None = None,
    *,
    seed: int = 0,
) -> tuple[Int[np.ndarray, " titles"], list[int]]:
    """Splits each large cluster into subclusters.

    Args:
        strategy: Clustering strategy, which also made the clusters.
        vectors: Vectors of titles, float32, unit norm or zero.
        clusters: Cluster of each title; -1 is noise.
        sentence_vectors: Sentence vectors of titles; None without a sentence encoder.
        seed: Seed of the clustering strategy.

    Returns:
        The subcluster of each title, numbered from 0 by descending size, and the cluster that contains each
        subcluster. The subcluster of a title is -1 if the cluster of the title is not split, or if the title
        is noise in the split.
    """
    subclusters, count = np.full(len(clusters), -1, dtype=np.int64), 0
    # DBSCAN suggests eps from at least min_samples - 1 neighbours.
    max_neighbours = max(MAX_NEIGHBOURS, strategy.min_samples - 1 if isinstance(strategy, DBSCAN) else 0)
    neighbour_count = min(max_neighbours, strategy.neighbours)
    for members in titles_by_cluster(clusters):
        if len(members) < MIN_SPLIT_SIZE:
            continue
        points = _centre(vectors[members])
        if sentence_vectors is not None and sentence_vectors.shape[1]:
            meanings = _centre(np.asarray(sentence_vectors[members], dtype=np.float32))
            points = unit_rows(np.hstack([points, meanings]))
        points = unit_rows(np.hstack([points, points.any(axis=1, keepdims=True).astype(np.float32)]))
        neighbours = Neighbours(*SearchSettings().open(points).nearest_to_each(neighbour_count))
        partition = strategy.cluster(points, neighbours, seed=seed)
        numbers = number_by_size(partition.clusters, MIN_SUBCLUSTER_SIZE)
        if numbers.max() > 0:
            subclusters[members] = np.where(numbers >= 0, numbers + count, -1)
            count += int(numbers.max()) + 1
    subclusters = number_by_size(subclusters, MIN_SUBCLUSTER_SIZE)
    return subclusters, [int(clusters[members[0]]) for members in titles_by_cluster(subclusters)]


def _centre(vectors: np.ndarray) -> np.ndarray:
    """Subtracts the mean of the nonzero vectors and normalizes the result. Zero vectors remain zero."""
    is_nonzero = vectors.any(axis=1, keepdims=True)
    return unit_rows(np.where(is_nonzero, vectors - vectors.sum(axis=0) / max(int(is_nonzero.sum()), 1), 0))
