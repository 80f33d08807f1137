"""Measures how stable a clustering is across random seeds, by the adjusted Rand index."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from storage.shapes import Int
from tasks.cluster import Clusterer
from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import Partition


@dataclass(frozen=True, kw_only=True, eq=False)
class Stability:
    """Partitions of the titles with several seeds, and the adjusted Rand index of each pair of partitions."""

    partitions: tuple[Partition, ...]  # one per seed
    agreement: np.ndarray  # (seeds, seeds): adjusted Rand index of each pair, 1 on the diagonal

    @property
    def run_to_run_ari(self) -> float:
        """Mean adjusted Rand index of the partitions with different seeds; 1 for a single seed."""
        seeds = len(self.partitions)
        return float((self.agreement.sum() - seeds) / (seeds * (seeds - 1))) if seeds > 1 else 1.0

    @property
    def typical(self) -> Partition:
        """Partition with the highest mean adjusted Rand index with all partitions; in a tie, the first."""
        return self.partitions[int(np.round(self.agreement.sum(1), 12).argmax())]


def cluster_with_seeds(
    strategy: Clusterer, vectors: np.ndarray, neighbours: Neighbours, seeds: Sequence[int]
) -> Stability:
    """Runs a clustering strategy once per seed, and compares the results.

    Raises:
        ValueError: ``seeds`` is empty.
    """
    if not seeds:
        raise ValueError("cluster_with_seeds needs at least one seed, got none")
    return compare([strategy.cluster(vectors, neighbours, seed=seed) for seed in seeds])


def compare(partitions: Sequence[Partition]) -> Stability:
    """Computes the adjusted Rand index of each pair of partitions."""
    agreement = np.eye(len(partitions))
    for row, left in enumerate(partitions):
        for column, right in enumerate(partitions[:row]):
            agreement[row, column] = agreement[column, row] = adjusted_rand(left.clusters, right.clusters)
    return Stability(partitions=tuple(partitions), agreement=agreement)


def adjusted_rand(left: Int[np.ndarray, " titles"], right: Int[np.ndarray, " titles"]) -> float:
    """Returns the adjusted Rand index of two partitions, about 0 for random partitions and 1 for equal ones.

    The index is (P - E) / (M - E). A and B are the numbers of pairs of titles that are in one cluster of the
    left and of the right partition, and M is the mean of A and B. P is the number of pairs that are in one
    cluster of both partitions. E is A · B divided by the number of all pairs, which is the expectation of P
    for random partitions. A title that is noise (-1) counts as a cluster of one title. If A = B = P, the
    index is 1.

    References: L. Hubert, P. Arabie, Comparing partitions, Journal of Classification 2 (1985), equation 5.
    """
    is_in_both = (left >= 0) & (right >= 0)
    joint = left[is_in_both].astype(np.int64) * (int(right.max(initial=0)) + 1) + right[is_in_both]
    joint_pairs, left_pairs, right_pairs = map(_count_pairs, (joint, left[left >= 0], right[right >= 0]))
    if left_pairs == right_pairs == joint_pairs:
        return 1.0
    expected_pairs = left_pairs * right_pairs / (len(left) * (len(left) - 1) / 2)
    return float((joint_pairs - expected_pairs) / ((left_pairs + right_pairs) / 2 - expected_pairs))


def _count_pairs(clusters: Int[np.ndarray, " titles"]) -> float:
    """Returns the number of pairs of titles in the same cluster."""
    sizes = np.unique(clusters, return_counts=True)[1]
    return float((sizes * (sizes - 1.0) / 2).sum())
