"""What every strategy of the family returns, and the one way in which clusters are numbered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

COLLAPSED_SHARE = 0.5  # one cluster with more than this share of the known titles is no grouping of a guide


@dataclass(frozen=True, kw_only=True)
class Density:
    """What a strategy took for near.

    Attributes:
        eps: Greatest cosine distance of two near titles.
        min_samples: Titles so near, itself included, that make a title core.
    """

    eps: float
    min_samples: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Partition:
    """A cluster a title.

    Attributes:
        labels: int32, shape (titles,): 0 is the largest cluster, equal sizes ordered by their first title; -1 is noise.
        iterations: Passes over the titles that it took; 0 where the strategy makes none.
        collapsed: One cluster holds more than half of the titles that are known at all.
        note: What a person should know about it, in a sentence; empty when there is nothing to say.
        density: Of a strategy that knows near titles by their distance.
    """

    labels: np.ndarray
    iterations: int = 0
    collapsed: bool = False
    note: str = ""
    density: Density | None = None

    @property
    def count(self) -> int:
        """Number of clusters."""
        return int(self.labels.max(initial=-1)) + 1


def renumber(labels: np.ndarray, minimum_size: int = 1) -> np.ndarray:
    """Largest cluster first, ties by the first title; clusters below ``minimum_size`` become noise.

    Args:
        labels: Integers, shape (titles,), any numbering; negative is noise.
        minimum_size: Titles that make a cluster.

    Returns:
        int32, shape (titles,).
    """
    found, first, inverse, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    kept = (found >= 0) & (sizes >= minimum_size)
    order = np.lexsort((first, -sizes))
    order = order[kept[order]]
    renamed = np.full(len(found), -1, dtype=np.int32)
    renamed[order] = np.arange(len(order), dtype=np.int32)
    return renamed[inverse.reshape(-1)] if len(labels) else np.zeros(0, dtype=np.int32)


def finish(labels: np.ndarray, known: np.ndarray, *, minimum_size: int, iterations: int = 0, note: str = "", remedy: str) -> Partition:
    """The numbered partition, with a word of warning if it is one heap or nothing but noise.

    Args:
        labels: Any numbering, negative is noise.
        known: bool, shape (titles,): titles with a vector.
        minimum_size: Titles that make a cluster.
        iterations: Passes it took.
        note: What the strategy has to say.
        remedy: What to change when everything ended in one cluster.
    """
    labels = renumber(labels, minimum_size)
    titles = int(known.sum())
    largest = int((labels == 0).sum())
    collapsed = titles >= 2 * minimum_size and largest > COLLAPSED_SHARE * titles
    if collapsed:
        note = f"{note} One cluster holds {largest} of {titles} titles: {remedy}".strip()
    elif titles and not len(labels[labels >= 0]):
        note = f"{note} None of {titles} titles is in a cluster: they are too few, or too far apart for these settings.".strip()
    return Partition(labels=labels, iterations=iterations, collapsed=collapsed, note=note)
