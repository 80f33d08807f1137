"""Each title's nearest neighbours, and the symmetric weighted graph made of them.

Title j is linked to title i when either is among the other's neighbours (or, for the mutual graph, when both are).
The mutual graph cuts off hubs: in many dimensions a few titles are among the neighbours of very many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest titles of each title, as tasks.neighbours.similarity.top_neighbours gives them.

    Attributes:
        ids: Integers, shape (titles, k), nearest first, -1 where there is none.
        cosines: float32, shape (titles, k).
    """

    ids: np.ndarray
    cosines: np.ndarray

    def __post_init__(self) -> None:
        if self.ids.ndim != 2 or self.ids.shape != self.cosines.shape:
            raise ValueError(f"ids and cosines must both be (titles, k), got {self.ids.shape} and {self.cosines.shape}")

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Graph:
    """A symmetric graph in compressed rows: the neighbours of i are ``targets[offsets[i]:offsets[i + 1]]``, ascending.

    Attributes:
        offsets: int64, shape (titles + 1,).
        targets: int64, shape (edges,); each edge stands in both of its rows.
        weights: float32, shape (edges,), above 0.
    """

    offsets: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def degrees(self) -> np.ndarray:
        """int64, shape (titles,)."""
        return np.diff(self.offsets)


def neighbour_graph(neighbours: Neighbours, *, minimum_similarity: float = 0.0, mutual: bool = False) -> Graph:
    """The symmetric graph of the pairs of neighbours that are similar enough.

    Args:
        neighbours: Nearest titles of each title.
        minimum_similarity: Pairs of a lower cosine are not linked, nor are pairs of cosine 0 and below.
        mutual: Link only titles that name each other.
    """
    titles, width = neighbours.ids.shape
    sources = np.repeat(np.arange(titles, dtype=np.int64), width)
    targets = neighbours.ids.reshape(-1).astype(np.int64)
    cosines = neighbours.cosines.reshape(-1)
    kept = (targets >= 0) & (targets != sources) & (cosines >= minimum_similarity) & (cosines > 0)
    return symmetric_graph(titles, sources[kept], targets[kept], cosines[kept], mutual=mutual)


def symmetric_graph(titles: int, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray, *, mutual: bool = False) -> Graph:
    """The graph of directed pairs, each taken in both directions and kept once.

    Args:
        titles: Number of nodes.
        sources: Integers, shape (pairs,).
        targets: Integers, shape (pairs,); no pair twice in the same direction.
        weights: float, shape (pairs,); of a pair named in both directions the first weight is kept.
        mutual: Keep only pairs named in both directions.
    """
    keys = np.minimum(sources, targets) * titles + np.maximum(sources, targets)
    pairs, first, times = np.unique(keys, return_index=True, return_counts=True)
    if mutual:
        pairs, first = pairs[times == 2], first[times == 2]
    low, high = np.divmod(pairs, max(titles, 1))
    rows = np.concatenate([low, high])
    columns = np.concatenate([high, low])
    order = np.argsort(rows * titles + columns)
    offsets = np.zeros(titles + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=titles), out=offsets[1:])
    return Graph(offsets, columns[order], np.tile(weights[first], 2)[order].astype(np.float32))
