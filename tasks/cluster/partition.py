"""Defines Partition, the result of all clustering strategies, and builds it."""

from dataclasses import dataclass

import numpy as np

from storage.formats.clustering import Density
from storage.shapes import Bool, Int

COLLAPSED_SHARE = 0.5  # a partition is collapsed if one cluster has a larger share of the titles


@dataclass(frozen=True, kw_only=True, eq=False)
class Partition:
    """Result of a clustering strategy: the cluster of each title, and how it was computed."""

    clusters: np.ndarray  # int32 (titles,), numbered by size (if equal, by first title) from 0; -1 is noise
    iterations: int = 0  # passes over the titles; 0 if the strategy is not iterative
    collapsed: bool = False  # whether one cluster contains more than half of the titles that have a vector
    note: str = ""  # message for the log
    density: Density | None = None  # parameters of a density-based strategy

    @property
    def count(self) -> int:
        """Number of clusters."""
        return int(self.clusters.max(initial=-1)) + 1


def titles_by_cluster(clusters: Int[np.ndarray, " titles"]) -> list[Int[np.ndarray, " members"]]:
    """Returns the row numbers of the titles in each cluster, ascending, without noise (-1)."""
    order = np.argsort(clusters, kind="stable")
    bounds = np.searchsorted(clusters[order], np.arange(int(clusters.max(initial=-1)) + 2))
    return np.split(order, bounds)[1:-1]


def number_by_size(clusters: Int[np.ndarray, " titles"], minimum_size: int) -> Int[np.ndarray, " titles"]:
    """Returns the cluster of each title, int32 (titles,), with clusters numbered from 0 by descending size.

    Clusters of equal size are ordered by their first title. Clusters with fewer than ``minimum_size`` titles
    become noise (-1).
    """
    ids, first, inverse = np.unique(clusters, return_index=True, return_inverse=True)
    sizes = np.bincount(inverse, minlength=len(ids))
    order = np.lexsort((first, -sizes))
    order = order[(ids[order] >= 0) & (sizes[order] >= minimum_size)]
    new_numbers = np.full(len(ids), -1, dtype=np.int32)
    new_numbers[order] = np.arange(len(order), dtype=np.int32)
    return new_numbers[inverse]


def build_partition(
    clusters: Int[np.ndarray, " titles"],
    has_vector: Bool[np.ndarray, " titles"],
    *,
    minimum_size: int,
    iterations: int = 0,
    note: str = "",
    remedy: str,
    density: Density | None = None,
) -> Partition:
    """Builds a Partition with clusters numbered by size, with a note if the Partition is collapsed or empty.

    Args:
        clusters: Cluster of each title, in any numbering; negative numbers are noise.
        has_vector: Whether each title has a nonzero vector.
        minimum_size: Minimum number of titles of a cluster; smaller clusters become noise.
        iterations: Number of passes over the titles.
        note: Message for the log; the note on a collapsed or empty partition is appended to it.
        remedy: Advice for the case that the partition is collapsed.
        density: Parameters of a density-based strategy.
    """
    clusters = number_by_size(clusters, minimum_size)
    title_count, largest_size = int(has_vector.sum()), int((clusters == 0).sum())
    collapsed = title_count >= 2 * minimum_size and largest_size > COLLAPSED_SHARE * title_count
    if collapsed:
        note = f"{note} One cluster holds {largest_size} of {title_count} titles: {remedy}".strip()
    elif title_count and not largest_size:
        reason = "they are too few, or too far apart for these settings"
        note = f"{note} None of {title_count} titles is in a cluster: {reason}.".strip()
    return Partition(
        clusters=clusters, iterations=iterations, collapsed=collapsed, note=note, density=density
    )
