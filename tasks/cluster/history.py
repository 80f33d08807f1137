"""Identities of clusters: a cluster keeps its number and its colour while most of its titles stay together.

Ids number clusters by size and mean nothing in the next run. A cluster takes the *identity* of the previous
run's cluster with which it shares the most titles, counted over the titles of both runs, if those are more
than half of what either of the two still has; each identity is given once, the largest overlap first. Others
get numbers that were never given, and the lowest free *colours*, so that the palette's first colours stay in
use.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from storage.shapes import Int

LEAST_SHARE = 0.5  # of the smaller of two clusters, over titles of both runs


@dataclass(frozen=True)
class Identity:
    """A number and a colour that stay with a cluster."""

    identity: int
    colour: int


def keep_identities(
    shows: Sequence[str],
    clusters: Int[np.ndarray, " titles"],
    previous: Mapping[str, int] | None = None,
    known: Sequence[Identity] = (),
    next_identity: int = 0,
) -> tuple[list[Identity], int, float | None]:
    """Identities of the clusters of this run, of which -1 is noise.

    ``previous`` has show key and cluster of clustered titles of the previous run, ``known`` the identity of
    each of its clusters, ``next_identity`` is the least number never given.

    Returns:
        One identity per cluster; the least number never given now; and the share of the previous run's
        clustered titles still here that are in the cluster that continues theirs (None without such a run).
    """
    count = int(clusters.max(initial=-1)) + 1
    before = np.array([(previous or {}).get(show, -1) for show in shows], dtype=np.int64)
    both = (before >= 0) & (clusters >= 0)
    pairs, sizes = np.unique(np.stack([clusters[both], before[both]]), axis=1, return_counts=True)
    own_sizes = np.bincount(clusters[both], minlength=count)
    old_sizes = np.bincount(before[before >= 0], minlength=len(known))
    heir: dict[int, int] = {}
    kept = 0
    for place in np.lexsort((pairs[1], pairs[0], -sizes)).tolist():
        own, old = pairs[:, place].tolist()
        enough = sizes[place] > LEAST_SHARE * min(own_sizes[own], old_sizes[old])
        if enough and own not in heir and old not in heir.values():
            heir[own] = old
            kept += int(sizes[place])
    taken = {known[old].colour for old in heir.values()}
    free = (colour for colour in range(count + len(taken)) if colour not in taken)
    new = (Identity(number, next(free)) for number in range(next_identity, next_identity + count))
    found = [known[heir[own]] if own in heir else next(new) for own in range(count)]
    still_here = int((before >= 0).sum())
    return found, next_identity + count - len(heir), kept / still_here if still_here else None
