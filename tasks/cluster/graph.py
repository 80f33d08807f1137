"""Each title's nearest neighbours, and the symmetric weighted graph made of them.

Title j is linked to title i when either is among the other's neighbours (or, for the mutual graph, when both
are). The mutual graph cuts off hubs: in many dimensions a few titles are among the neighbours of very many.
"""

from dataclasses import dataclass
from typing import no_type_check

import numpy as np

from tasks.compiled import compiled


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest titles of each title."""

    ids: np.ndarray  # (titles, k), nearest first, -1 where there is none
    cosines: np.ndarray  # float32, (titles, k)

    def __post_init__(self) -> None:
        if self.ids.ndim != 2 or self.ids.shape != self.cosines.shape:
            shapes = f"{self.ids.shape} and {self.cosines.shape}"
            raise ValueError(f"ids and cosines must both be (titles, k), got {shapes}")

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class Graph:
    """A symmetric graph in compressed rows: those of i are ``targets[offsets[i]:offsets[i + 1]]``."""

    offsets: np.ndarray  # int64, (titles + 1,)
    targets: np.ndarray  # int32, (edges,); each edge stands in both of its rows
    weights: np.ndarray  # float32, (edges,), above 0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def degrees(self) -> np.ndarray:
        """int64, shape (titles,)."""
        return np.diff(self.offsets)


def neighbour_graph(
    neighbours: Neighbours,
    weights: np.ndarray | None = None,
    *,
    minimum_similarity: float = 0,
    mutual: bool = False,
) -> Graph:
    """The symmetric graph of the pairs of neighbours that are similar enough; of cosine or weight 0 never.

    ``weights``, (titles, k), the cosines if None, are the same in both directions of a pair.
    """
    ids, cosines = neighbours.ids, neighbours.cosines
    weights = cosines if weights is None else weights
    kept = (ids >= 0) & (ids != np.arange(len(ids))[:, None])
    kept &= (cosines >= minimum_similarity) & (cosines > 0) & (weights > 0)
    sources = np.repeat(np.arange(len(ids), dtype=np.int32), kept.sum(axis=1))
    return symmetric_graph(len(ids), sources, ids[kept], weights[kept], mutual=mutual)


def symmetric_graph(
    titles: int, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray, *, mutual: bool = False
) -> Graph:
    """The graph of some pairs, each given in one direction or in both (then each keeps its own weight).

    ``mutual`` links only pairs that are given in both directions. No title is its own target.
    """
    ends = (own.astype(np.int32, copy=False) for own in (sources, targets))
    return Graph(*compiled(_symmetric)(titles, *ends, weights.astype(np.float32, copy=False), mutual))


@no_type_check
def _symmetric(titles, sources, targets, weights, mutual):
    """Sorts both directions of all pairs by target, then by source, by counting; of a million titles with 25
    neighbours it takes 1 GB, and an argsort of their keys took 2.5.
    """
    pairs = len(sources)
    begins = np.zeros(titles + 1, dtype=np.int64)
    for pair in range(pairs):
        begins[sources[pair] + 1] += 1
        begins[targets[pair] + 1] += 1
    begins = np.cumsum(begins)
    places, by_target = begins[:-1].copy(), np.empty(2 * pairs, dtype=np.uint32)
    for entry in range(2 * pairs):  # behind the pairs their other directions
        target = targets[entry] if entry < pairs else sources[entry - pairs]
        by_target[places[target]] = entry
        places[target] += 1
    places, entries = begins[:-1].copy(), np.empty(2 * pairs, dtype=np.uint32)
    for entry in by_target:
        source = sources[entry] if entry < pairs else targets[entry - pairs]
        entries[places[source]] = entry
        places[source] += 1
    offsets = np.zeros(titles + 1, dtype=np.int64)
    kept = 0
    for title in range(titles):
        place, end = begins[title], begins[title + 1]
        while place < end:
            entry = entries[place]  # of equal targets the pair's own direction is first
            target = targets[entry] if entry < pairs else sources[entry - pairs]
            last = entry
            place += 1
            while place < end:
                other = entries[place]
                if (targets[other] if other < pairs else sources[other - pairs]) != target:
                    break
                last = other
                place += 1
            if not mutual or entry < pairs <= last:
                by_target[kept] = entry
                kept += 1
        offsets[title + 1] = kept
    near, strengths = np.empty(kept, dtype=np.int32), np.empty(kept, dtype=np.float32)
    for place in range(kept):
        entry = by_target[place]
        pair = entry if entry < pairs else entry - pairs
        near[place] = targets[pair] if entry < pairs else sources[pair]
        strengths[place] = weights[pair]
    return offsets, near, strengths


def shared_share(neighbours: Neighbours) -> np.ndarray:
    """Jaccard's index of the neighbours of each title and of its neighbour, each set with its owner.

    float32, shape (titles, k), 0 where there is no neighbour. A hub is near to everybody and shares little
    with anybody: its links weigh less than by cosine.

    References: R. A. Jarvis, E. A. Patrick, Clustering using a similarity measure based on shared near
    neighbors, IEEE Transactions on Computers 1973.
    """
    return compiled(_shared_share)(neighbours.ids.astype(np.int32, copy=False))


@no_type_check
def _shared_share(ids):
    titles, width = ids.shape
    shares = np.zeros((titles, width), dtype=np.float32)
    owner = np.full(titles, -1, dtype=np.int32)  # the last title whose set held each one
    sizes = np.ones(titles, dtype=np.int64)
    for title in range(titles):
        for place in range(width):
            sizes[title] += ids[title, place] >= 0
    for title in range(titles):
        owner[title] = title
        for place in range(width):
            if ids[title, place] >= 0:
                owner[ids[title, place]] = title
        for place in range(width):
            near = ids[title, place]
            if near < 0:
                continue
            shared = owner[near] == title
            for other in ids[near]:
                shared += other >= 0 and owner[other] == title
            shares[title, place] = shared / (sizes[title] + sizes[near] - shared)
    return shares
