"""The same cluster from night to night: it keeps its number and its colour while most of its titles stay together.

Clusters are numbered by size, so a cluster's id says nothing tomorrow. Its *identity* does: tonight's cluster takes the
identity of yesterday's with which it shares the most titles, counted over the titles of both nights, if those are more
than half of what either of the two still has; each identity is given once, the largest overlap first. Others get
numbers that were never given. The *colour* is a small number that goes with the identity; newcomers take the lowest
that nobody has tonight, so that the palette's first colours stay in use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

LEAST_SHARE = 0.5  # of the smaller of two clusters, over titles of both nights


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who a cluster is beyond tonight.

    Attributes:
        identity: A number that stays.
        colour: A small number that stays with it.
    """

    identity: int
    colour: int


def keep_identities(
    shows: Sequence[str], clusters: np.ndarray, yesterday: Mapping[str, int] | None = None, known: Sequence[Identity] = (), next_identity: int = 0
) -> tuple[list[Identity], int, float | None]:
    """Identities of tonight's clusters.

    Args:
        shows: Show key of each title, the same from night to night.
        clusters: Integers, shape (titles,); -1 is noise.
        yesterday: Show key to cluster of the night before, noise left out.
        known: Identity of each of yesterday's clusters.
        next_identity: Least number never given.

    Returns:
        One identity a cluster; the least number never given now; and the share of yesterday's clustered titles, of those
        still here, that are in the cluster that carries on theirs (None without a yesterday).
    """
    count = int(clusters.max(initial=-1)) + 1
    before = np.array([-1 if yesterday is None else yesterday.get(show, -1) for show in shows], dtype=np.int64)
    both = (before >= 0) & (clusters >= 0)
    pairs, sizes = np.unique(np.stack([clusters[both], before[both]], axis=1), axis=0, return_counts=True) if both.any() else (np.zeros((0, 2), int), np.zeros(0, int))
    tonight_sizes = np.bincount(clusters[both], minlength=count)
    before_sizes = np.bincount(before[before >= 0], minlength=len(known))
    heir: dict[int, int] = {}
    kept = 0
    for place in np.lexsort((pairs[:, 1], pairs[:, 0], -sizes)).tolist():
        own, old = int(pairs[place, 0]), int(pairs[place, 1])
        if own not in heir and old not in heir.values() and sizes[place] > LEAST_SHARE * min(tonight_sizes[own], before_sizes[old]):
            heir[own] = old
            kept += int(sizes[place])
    taken = {known[old].colour for old in heir.values()}
    free = (colour for colour in range(count + len(taken)) if colour not in taken)
    found = []
    for own in range(count):
        if own in heir:
            found.append(known[heir[own]])
        else:
            found.append(Identity(identity=next_identity, colour=next(free)))
            next_identity += 1
    still_here = int((before >= 0).sum())
    return found, next_identity, kept / still_here if still_here else None
