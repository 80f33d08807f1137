"""What every strategy of the family returns, and how clusters are numbered."""

from dataclasses import dataclass

import numpy as np

from storage.formats.clustering import Density
from storage.shapes import Bool, Int

COLLAPSED_SHARE = 0.5  # one cluster with more than this share of the known titles is no grouping of a guide


@dataclass(frozen=True, kw_only=True, eq=False)
class Partition:
    """A cluster per title."""

    labels: np.ndarray  # int32: 0 is the largest cluster, equal sizes by their first title; -1 is noise
    iterations: int = 0  # passes over the titles; 0 where the strategy makes none
    collapsed: bool = False  # one cluster holds more than half of the titles that have a vector
    note: str = ""  # a sentence for the log
    density: Density | None = None  # of a strategy that works with distances

    @property
    def count(self) -> int:
        """Number of clusters."""
        return int(self.labels.max(initial=-1)) + 1


def members_of(labels: Int[np.ndarray, " titles"]) -> list[Int[np.ndarray, " members"]]:
    """The titles of each cluster, rising, clusters by their number from 0 on; -1 is noise."""
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(int(labels.max(initial=-1)) + 2))
    return np.split(order, bounds)[1:-1]


def renumber(labels: Int[np.ndarray, " titles"], minimum_size: int) -> Int[np.ndarray, " titles"]:
    """int32: largest cluster first, ties by the first title; below ``minimum_size`` noise (-1)."""
    old, first, inverse, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    order = order[(old[order] >= 0) & (sizes[order] >= minimum_size)]
    renamed = np.full(len(old), -1, dtype=np.int32)
    renamed[order] = np.arange(len(order), dtype=np.int32)
    return renamed[inverse.reshape(-1)]


def finish(
    labels: Int[np.ndarray, " titles"],
    known: Bool[np.ndarray, " titles"],
    *,
    minimum_size: int,
    iterations: int = 0,
    note: str = "",
    remedy: str,
    density: Density | None = None,
) -> Partition:
    """The partition by labels of any numbering (negative is noise), with a note where it is of little use.

    ``known`` are titles with a vector; ``remedy`` is what to change when everything ended in one cluster.
    """
    labels = renumber(labels, minimum_size)
    titles, largest = int(known.sum()), int((labels == 0).sum())
    collapsed = titles >= 2 * minimum_size and largest > COLLAPSED_SHARE * titles
    if collapsed:
        note = f"{note} One cluster holds {largest} of {titles} titles: {remedy}".strip()
    elif titles and not largest:
        why = "they are too few, or too far apart for these settings"
        note = f"{note} None of {titles} titles is in a cluster: {why}.".strip()
    return Partition(labels=labels, iterations=iterations, collapsed=collapsed, note=note, density=density)
