"""Each title's nearest neighbours, and the symmetric weighted graph made of them.

Title j is linked to title i when either is among the other's neighbours (or, for the mutual graph, when both are).
The mutual graph cuts off hubs: in many dimensions a few titles are among the neighbours of very many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tasks.cluster.loops import loop, named_back, shared_shares

ROWS_AT_ONCE = 1_024  # titles whose neighbours' neighbours are looked at together: 2.5 MiB at 25 neighbours


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
    """A symmetric graph in compressed rows: the neighbours of i are ``targets[offsets[i]:offsets[i + 1]]``.

    Attributes:
        offsets: int64, shape (titles + 1,).
        targets: int32, shape (edges,); each edge stands in both of its rows.
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
        neighbours: Nearest titles of each title, each once.
        weights: Weight of each pair, shape (titles, k), the same in both directions; the cosines if None. Pairs of
            weight 0 and below are not linked.
        minimum_similarity: Pairs of a lower cosine are not linked, nor are pairs of cosine 0 and below.
        mutual: Link only titles that name each other.
    """
    cosines = neighbours.cosines
    loads = cosines if weights is None else weights
    titles = len(neighbours)
    ids = np.ascontiguousarray(neighbours.ids, dtype=np.int32)
    kept = (ids >= 0) & (ids != np.arange(titles, dtype=np.int32)[:, None]) & (cosines >= minimum_similarity) & (cosines > 0) & (loads > 0)
    compiled = loop(named_back, titles)
    both_ways = compiled(ids, kept) if compiled else _named_back(ids, kept)
    if mutual:
        kept = both_ways
    one_way = kept & ~both_ways
    back, ahead = np.repeat(np.arange(titles, dtype=np.int32), one_way.sum(axis=1)), ids[one_way]  # named by one: the other's edge is added
    order = np.argsort(ahead, kind="stable")
    counts = np.stack([kept.sum(axis=1), np.bincount(ahead, minlength=titles)], axis=1)  # of a row: those it names, then those added
    offsets = np.zeros(titles + 1, dtype=np.int64)
    np.cumsum(counts.sum(axis=1), out=offsets[1:])
    back, added = back[order], loads[one_way][order]
    del order, ahead  # 16 bytes a pair named by one, at the peak of 100,000 titles
    named = np.repeat(np.tile([True, False], titles), counts.reshape(-1))
    targets, strengths = np.empty(len(named), dtype=np.int32), np.empty(len(named), dtype=np.float32)
    targets[named], strengths[named] = ids[kept], loads[kept]
    targets[~named], strengths[~named] = back, added
    return Graph(offsets, targets, strengths)


def _named_back(ids: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Which kept pairs are kept in the other direction too: bool, shape (titles, k)."""
    back = np.zeros(kept.shape, dtype=bool)
    for start in range(0, len(ids), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        near = ids[part]
        own = np.arange(start, start + len(near), dtype=np.int32)[:, None, None]
        back[part] = ((ids[near] == own) & kept[near]).any(axis=2) & kept[part]
    return back


def shared_share(neighbours: Neighbours, *, block: int = ROWS_AT_ONCE) -> np.ndarray:
    """How far each title and its neighbour have the same neighbours: Jaccard's index of the two sets, each with its owner.

    A hub is near to everybody and shares little with anybody, so its links count for less than their cosines say.

    References: R. A. Jarvis, E. A. Patrick, Clustering using a similarity measure based on shared near neighbors, IEEE
    Transactions on Computers 1973.

    Args:
        neighbours: Nearest titles of each title.
        block: Titles at once: block x k x (2k + 2) integers of 4 bytes, 5 MiB at 25 neighbours.

    Returns:
        float32, shape (titles, k), 0 to 1; 0 where there is no neighbour.
    """
    titles, width = neighbours.ids.shape
    if compiled := loop(shared_shares, titles):
        return compiled(np.ascontiguousarray(neighbours.ids, dtype=np.int32))
    absent = np.arange(-2, -3 - width, -1, dtype=np.int32)  # no two places of an absent neighbour are equal, so none is shared
    ids = neighbours.ids.astype(np.int32, copy=False)
    sets = np.concatenate([np.arange(titles, dtype=np.int32)[:, None], ids], axis=1)
    sizes = (sets >= 0).sum(axis=1)
    shares = np.zeros((titles, width), dtype=np.float32)
    for start in range(0, titles, block):
        own = np.where(sets[start : start + block] >= 0, sets[start : start + block], absent)
        near = ids[start : start + block]
        theirs = np.where(sets[near] >= 0, sets[near], absent - np.int32(width + 1))  # (block, k, k + 1)
        both = np.concatenate([np.broadcast_to(own[:, None], theirs.shape), theirs], axis=2)
        both.sort(axis=2)
        shared = (both[:, :, 1:] == both[:, :, :-1]).sum(axis=2)
        shares[start : start + block] = np.where(near >= 0, shared / (sizes[start : start + block, None] + sizes[near] - shared), 0)
    return shares


def symmetric_graph(titles: int, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> Graph:
    """The graph of some pairs.

    Args:
        titles: Number of nodes.
        sources: Integers, shape (pairs,).
        targets: Integers, shape (pairs,); each pair once, in one of its directions.
        weights: float, shape (pairs,).
    """
    both = np.concatenate([sources, targets])
    order = np.argsort(both, kind="stable")
    offsets = np.zeros(titles + 1, dtype=np.int64)
    np.cumsum(np.bincount(both, minlength=titles), out=offsets[1:])
    return Graph(offsets, np.concatenate([targets, sources])[order].astype(np.int32), np.tile(weights, 2)[order].astype(np.float32))
