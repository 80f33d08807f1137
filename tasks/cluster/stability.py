"""How much a clustering owes to its seed: several runs, compared by the adjusted Rand index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import Partition


@dataclass(frozen=True, kw_only=True, eq=False)
class Stability:
    """Partitions of several seeds.

    Attributes:
        partitions: One a seed, in the seeds' order.
        agreement: float64, shape (seeds, seeds): adjusted Rand index of each pair, 1 on the diagonal.
    """

    partitions: tuple[Partition, ...]
    agreement: np.ndarray

    @property
    def run_to_run_ari(self) -> float:
        """Mean over the pairs of different seeds; 1 when there is one seed only."""
        seeds = len(self.partitions)
        return float((self.agreement.sum() - seeds) / (seeds * (seeds - 1))) if seeds > 1 else 1.0

    @property
    def typical(self) -> Partition:
        """The partition that agrees best with the others; the first of equals."""
        return self.partitions[int(np.round(self.agreement.sum(1), 12).argmax())]


class Clusters(Protocol):
    """A strategy of the family, as this file needs it."""

    def cluster(self, vectors: np.ndarray, neighbours: Neighbours, *, seed: int) -> Partition:
        """Clusters of the titles."""
        ...


def several_seeds(strategy: Clusters, vectors: np.ndarray, neighbours: Neighbours, seeds: Sequence[int]) -> Stability:
    """Runs a strategy of the family once a seed.

    Args:
        strategy: A Clusterer.
        vectors: float32, shape (titles, dim).
        neighbours: Nearest titles of each title.
        seeds: At least one.

    Raises:
        ValueError: No seed.
    """
    if not seeds:
        raise ValueError("several_seeds needs at least one seed, got none")
    return compare(tuple(strategy.cluster(vectors, neighbours, seed=seed) for seed in seeds))


def compare(partitions: Sequence[Partition]) -> Stability:
    """The partitions with their adjusted Rand index pair by pair."""
    agreement = np.eye(len(partitions))
    for row, one in enumerate(partitions):
        for column in range(row):
            agreement[row, column] = agreement[column, row] = adjusted_rand(one.labels, partitions[column].labels)
    return Stability(partitions=tuple(partitions), agreement=agreement)


def adjusted_rand(left: np.ndarray, right: np.ndarray) -> float:
    """Adjusted Rand index of two partitions; each noise title (-1) counts as a cluster of its own.

    (P - E) / (M - E), P the pairs of titles together in both, M the mean of the pairs together in each, E what chance
    would give: the product of the latter two over all pairs. 1 for two partitions without any pair.

    References: L. Hubert, P. Arabie, Comparing partitions, Journal of Classification 2 (1985), equation 5.

    Args:
        left: Integers, shape (titles,).
        right: Integers, shape (titles,).
    """
    if left.shape != right.shape:
        raise ValueError(f"two partitions of the same titles are compared, got {left.shape} and {right.shape}")
    both = (left >= 0) & (right >= 0)
    joint = left[both].astype(np.int64) * (int(right.max(initial=0)) + 1) + right[both]
    together, in_left, in_right = _pairs(joint), _pairs(left[left >= 0]), _pairs(right[right >= 0])
    everything = len(left) * (len(left) - 1) / 2
    if in_left == in_right == together:
        return 1.0
    expected = in_left * in_right / everything
    return float((together - expected) / ((in_left + in_right) / 2 - expected))


def _pairs(labels: np.ndarray) -> float:
    """Pairs of titles with the same label."""
    sizes = np.unique(labels, return_counts=True)[1].astype(np.float64)
    return float((sizes * (sizes - 1) / 2).sum())
