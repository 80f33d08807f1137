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


def neighbour_graph(neighbours: Neighbours, weights: np.ndarray | None = None, *, minimum_similarity: float = 0.0, mutual: bool = False) -> Graph:
    """The symmetric graph of the pairs of neighbours that are similar enough.

    Args:
        neighbours: Nearest titles of each title.
        weights: Weight of each pair, shape (titles, k), the same in both directions; the cosines if None. Pairs of
            weight 0 and below are not linked.
        minimum_similarity: Pairs of a lower cosine are not linked, nor are pairs of cosine 0 and below.
        mutual: Link only titles that name each other.
    """
    titles, width = neighbours.ids.shape
    sources = np.repeat(np.arange(titles, dtype=np.int64), width)
    targets = neighbours.ids.reshape(-1).astype(np.int64)
    cosines = neighbours.cosines.reshape(-1)
    loads = cosines if weights is None else weights.reshape(-1)
    kept = (targets >= 0) & (targets != sources) & (cosines >= minimum_similarity) & (cosines > 0) & (loads > 0)
    return symmetric_graph(titles, sources[kept], targets[kept], loads[kept], mutual=mutual)


def shared_share(neighbours: Neighbours, *, block: int = 1_024) -> np.ndarray:
    """How far each title and its neighbour have the same neighbours: Jaccard's index of the two sets, each with its owner.

    A hub is near to everybody and shares little with anybody, so its links count for less than their cosines say.

    References: R. A. Jarvis, E. A. Patrick, Clustering using a similarity measure based on shared near neighbors, IEEE
    Transactions on Computers 1973.

    Args:
        neighbours: Nearest titles of each title.
        block: Titles at once: block x k x (2k + 2) integers of 8 bytes, 11 MiB at 25 neighbours.

    Returns:
        float32, shape (titles, k), 0 to 1; 0 where there is no neighbour.
    """
    titles, width = neighbours.ids.shape
    absent = -2 - np.arange(width + 1)  # no two places of an absent neighbour are equal, so none is shared
    sets = np.concatenate([np.arange(titles)[:, None], neighbours.ids], axis=1)
    sizes = (sets >= 0).sum(axis=1)
    shares = np.zeros((titles, width), dtype=np.float32)
    for start in range(0, titles, block):
        own = np.where(sets[start : start + block] >= 0, sets[start : start + block], absent)
        near = neighbours.ids[start : start + block]
        theirs = np.where(sets[near] >= 0, sets[near], absent - width - 1)  # (block, k, k + 1)
        both = np.concatenate([np.broadcast_to(own[:, None], theirs.shape), theirs], axis=2)
        both.sort(axis=2)
        shared = (both[:, :, 1:] == both[:, :, :-1]).sum(axis=2)
        shares[start : start + block] = np.where(near >= 0, shared / (sizes[start : start + block, None] + sizes[near] - shared), 0)
    return shares


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
