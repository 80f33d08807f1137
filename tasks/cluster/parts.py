"""A second level: large clusters taken apart by what their titles mean and by where they differ.

The titles of one cluster are alike in how they air; of a "Sport" of 800 titles nobody knows which is cycling.
From each title's vector the mean of its cluster is subtracted, from its sentence vector likewise, since
within a cluster only what differs can part it. The two are joined with equal weight, and the strategy that
found the clusters runs on the titles of one alone, with fewer neighbours: 12 parted "Sport" into 52, 25 into
25 of more mixed titles. A constant in each vector turns a cosine c into (1 + c) / 2, so that thresholds made
for a whole guide do not cut what is left.
"""

import dataclasses

import numpy as np

from storage.arrays import unit_rows
from storage.shapes import Float, Int
from tasks.cluster import Clusterer
from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import members_of, renumber
from tasks.neighbours.index import SearchSettings

SPLIT_FROM = 60  # titles of a cluster that is taken apart
SMALLEST = 5  # titles of a part
NEIGHBOURS = 12


def split_clusters(
    strategy: Clusterer,
    vectors: Float[np.ndarray, "titles dim"],
    clusters: Int[np.ndarray, " titles"],
    sentences: Float[np.ndarray, "titles features"] | None = None,
    *,
    seed: int = 0,
) -> tuple[Int[np.ndarray, " titles"], list[int]]:
    """Parts of the large clusters, numbered from 0, the largest first; and the cluster of each part.

    A title is in none (-1) if its cluster is small or stays whole, or if it is noise among its titles.
    """
    parts, parted = np.full(len(clusters), -1, dtype=np.int64), 0
    small = dataclasses.replace(strategy, neighbours=min(NEIGHBOURS, strategy.neighbours))
    for own in members_of(clusters):
        if len(own) < SPLIT_FROM:
            continue
        points = _apart(vectors[own])
        if sentences is not None and sentences.shape[1]:
            points = unit_rows(np.hstack([points, _apart(np.asarray(sentences[own], dtype=np.float32))]))
        points = unit_rows(np.hstack([points, points.any(axis=1, keepdims=True).astype(np.float32)]))
        neighbours = Neighbours(*SearchSettings().open(points).among_themselves(small.neighbours))
        labels = renumber(small.cluster(points, neighbours, seed=seed).labels, SMALLEST)
        if labels.max() > 0:
            parts[own] = np.where(labels >= 0, labels + parted, -1)
            parted += int(labels.max()) + 1
    parts = renumber(parts, SMALLEST)
    return parts, [int(clusters[own[0]]) for own in members_of(parts)]


def _apart(vectors: np.ndarray) -> np.ndarray:
    """Unit vectors of what each differs from the mean by; zero where a vector is zero."""
    known = vectors.any(axis=1, keepdims=True)
    return unit_rows(np.where(known, vectors - vectors.sum(axis=0) / max(int(known.sum()), 1), 0))
