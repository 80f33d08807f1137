"""Builds the symmetric weighted graph that links titles with their nearest neighbours.

Titles i and j are linked if i is a neighbour of j or j is a neighbour of i.
"""

from dataclasses import dataclass
from typing import no_type_check

import numpy as np

from tasks.compiled import compiled

MAX_PAIRS = 2**31  # maximum number of pairs, because uint32 numbers both directions of all pairs


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Ids and cosines of the k nearest titles of each title."""

    ids: np.ndarray  # row numbers of the nearest titles (titles, k), nearest first, padded with -1
    cosines: np.ndarray  # cosine similarities of ``ids``, float32 (titles, k)

    def __post_init__(self) -> None:
        if self.ids.ndim != 2 or self.ids.shape != self.cosines.shape:
            raise ValueError(
                f"ids and cosines must both have shape (titles, k), got {self.ids.shape} and "
                f"{self.cosines.shape}"
            )

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Graph:
    """Symmetric graph in CSR format: the neighbours of i are ``targets[offsets[i]:offsets[i + 1]]``."""

    offsets: np.ndarray  # int64, (titles + 1,)
    targets: np.ndarray  # int32, (edges,); each edge is stored in both directions
    weights: np.ndarray  # float32, (edges,), above 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def degrees(self) -> np.ndarray:
        """Number of neighbours of each title, int64 (titles,)."""
        return np.diff(self.offsets)


def neighbour_graph(
    neighbours: Neighbours, weights: np.ndarray | None = None, *, minimum_similarity: float = 0
) -> Graph:
    """Builds the graph that links each title with its neighbours.

    Args:
        neighbours: Nearest titles; pairs with a cosine or weight of at most 0 are omitted.
        weights: Symmetric weights of the neighbours, (titles, k); None: the cosines.
        minimum_similarity: Minimum cosine of a pair.
    """
    ids, cosines = neighbours.ids, neighbours.cosines
    weights = cosines if weights is None else weights
    mask = (ids >= 0) & (ids != np.arange(len(ids))[:, None])
    mask &= (cosines >= minimum_similarity) & (cosines > 0) & (weights > 0)
    sources = np.repeat(np.arange(len(ids), dtype=np.int32), mask.sum(axis=1))
    return symmetric_graph(len(ids), sources, ids[mask], weights[mask])


def symmetric_graph(title_count: int, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> Graph:
    """Builds a symmetric graph from weighted pairs of titles.

    If a pair occurs in one direction only, both directions get its weight.

    Args:
        title_count: Number of titles.
        sources: First title of each pair, (pairs,).
        targets: Second title of each pair, (pairs,), different from the first.
        weights: Weight of each pair, (pairs,).

    Raises:
        ValueError: There are more than MAX_PAIRS pairs.
    """
    if len(sources) > MAX_PAIRS:
        raise ValueError(
            f"the graph has {len(sources):,} pairs, at most {MAX_PAIRS:,} are possible; use fewer "
            "neighbours per title, or a higher minimum similarity"
        )
    ends = (ids.astype(np.int32, copy=False) for ids in (sources, targets))
    return Graph(*compiled(_symmetric)(title_count, *ends, weights.astype(np.float32, copy=False)))


@no_type_check
def _symmetric(title_count, sources, targets, weights):
    """Sorts the pairs, in both directions, by source and target, and returns the fields of Graph.

    For a million titles with 25 neighbours, the counting sort needs 1 GB of memory; an argsort needed 2.5 GB.
    """
    pairs = len(sources)
    begins = np.zeros(title_count + 1, dtype=np.int64)
    for pair in range(pairs):
        begins[sources[pair] + 1] += 1
        begins[targets[pair] + 1] += 1
    begins = np.cumsum(begins)
    next_slot, by_target = begins[:-1].copy(), np.empty(2 * pairs, dtype=np.uint32)
    for entry in range(2 * pairs):  # entries from ``pairs`` on are the reverse directions
        target = targets[entry] if entry < pairs else sources[entry - pairs]
        by_target[next_slot[target]] = entry
        next_slot[target] += 1
    next_slot, entries = begins[:-1].copy(), np.empty(2 * pairs, dtype=np.uint32)
    for entry in by_target:
        source = sources[entry] if entry < pairs else targets[entry - pairs]
        entries[next_slot[source]] = entry
        next_slot[source] += 1
    offsets = np.zeros(title_count + 1, dtype=np.int64)
    edges = 0
    for title in range(title_count):
        position, end = begins[title], begins[title + 1]
        while position < end:
            entry = entries[position]  # for equal targets, the original direction is first
            target = targets[entry] if entry < pairs else sources[entry - pairs]
            position += 1
            while position < end:
                reverse = entries[position]
                if (targets[reverse] if reverse < pairs else sources[reverse - pairs]) != target:
                    break
                position += 1
            by_target[edges] = entry
            edges += 1
        offsets[title + 1] = edges
    edge_targets, edge_weights = np.empty(edges, dtype=np.int32), np.empty(edges, dtype=np.float32)
    for position in range(edges):
        entry = by_target[position]
        pair = entry if entry < pairs else entry - pairs
        edge_targets[position] = targets[pair] if entry < pairs else sources[pair]
        edge_weights[position] = weights[pair]
    return offsets, edge_targets, edge_weights


def neighbour_jaccard(neighbours: Neighbours) -> np.ndarray:
    """Computes how many neighbours each title and each of its neighbours have in common (Jaccard index).

    The set of a title consists of its neighbours and the title itself. The Jaccard index of two titles is the
    size of the intersection of their sets divided by the size of the union. It is low for hubs, which have
    few neighbours in common with any title.

    Returns:
        Jaccard indices, float32 (titles, k); 0 for missing neighbours.

    References: R. A. Jarvis, E. A. Patrick, Clustering using a similarity measure based on shared near
    neighbors, IEEE Transactions on Computers 1973.
    """
    return compiled(_neighbour_jaccard)(neighbours.ids.astype(np.int32, copy=False))


@no_type_check
def _neighbour_jaccard(ids):
    title_count, neighbour_count = ids.shape
    shares = np.zeros((title_count, neighbour_count), dtype=np.float32)
    last_set = np.full(
        title_count, -1, dtype=np.int32
    )  # for each title, the last title whose set contained it
    sizes = np.ones(title_count, dtype=np.int64)
    for title in range(title_count):
        for column in range(neighbour_count):
            sizes[title] += ids[title, column] >= 0
    for title in range(title_count):
        last_set[title] = title
        for column in range(neighbour_count):
            if ids[title, column] >= 0:
                last_set[ids[title, column]] = title
        for column in range(neighbour_count):
            neighbour = ids[title, column]
            if neighbour < 0:
                continue
            shared_count = last_set[neighbour] == title
            for second_neighbour in ids[neighbour]:
                shared_count += second_neighbour >= 0 and last_set[second_neighbour] == title
            shares[title, column] = shared_count / (sizes[title] + sizes[neighbour] - shared_count)
    return shares
