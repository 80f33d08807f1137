"""Assigns an identity to each cluster, so that it keeps its number and colour from run to run.

The id of a cluster is its rank by size, which changes between runs. Its *identity* is that of the cluster of
the previous run with which it has the most titles in common. These must be more than half of the titles of
the smaller cluster, counting only titles that occur in both runs. Each identity is assigned once, to the pair
with the largest overlap first. All other clusters get new identities, and the first free colours of the
palette.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from storage.shapes import Int

MIN_SHARE = 0.5  # minimum overlap, as a share of the titles of the smaller cluster that are in both runs


@dataclass(frozen=True)
class Identity:
    """Number and colour by which users recognize a cluster; they stay the same from run to run."""

    identity: int
    colour: int  # position in the palette, from 0


def keep_identities(
    shows: Sequence[str],
    clusters: Int[np.ndarray, " titles"],
    previous: Mapping[str, int] | None = None,
    previous_identities: Sequence[Identity] = (),
    next_identity: int = 0,
) -> tuple[list[Identity], int, float | None]:
    """Assigns identities to the clusters of this run.

    Args:
        shows: Show key of each title.
        clusters: Cluster of each title; -1 is noise.
        previous: Cluster by show key, of the clustered titles of the previous run.
        previous_identities: Identity of each previous cluster.
        next_identity: First unused number.

    Returns:
        The identity of each cluster; the next unused number; and, among the titles that were in a cluster of
        the previous run and still exist, the share that is in a cluster with the same identity (None if
        there are no such titles).
    """
    count = int(clusters.max(initial=-1)) + 1
    previous_clusters = np.array([(previous or {}).get(show, -1) for show in shows], dtype=np.int64)
    in_both = (previous_clusters >= 0) & (clusters >= 0)
    cluster_pairs = np.stack([clusters[in_both], previous_clusters[in_both]])
    pairs, sizes = np.unique(cluster_pairs, axis=1, return_counts=True)
    new_sizes = np.bincount(clusters[in_both], minlength=count)
    old_sizes = np.bincount(previous_clusters[previous_clusters >= 0], minlength=len(previous_identities))
    matches: dict[int, int] = {}
    stayed = 0
    for index in np.lexsort((pairs[1], pairs[0], -sizes)).tolist():
        cluster, old = pairs[:, index].tolist()
        is_majority = sizes[index] > MIN_SHARE * min(new_sizes[cluster], old_sizes[old])
        if is_majority and cluster not in matches and old not in matches.values():
            matches[cluster] = old
            stayed += int(sizes[index])
    used_colours = {previous_identities[old].colour for old in matches.values()}
    free_colours = (colour for colour in range(count + len(used_colours)) if colour not in used_colours)
    new_ids = (Identity(number, next(free_colours)) for number in range(next_identity, next_identity + count))
    predecessors = (matches.get(cluster) for cluster in range(count))
    identities = [next(new_ids) if old is None else previous_identities[old] for old in predecessors]
    remaining = int((previous_clusters >= 0).sum())
    return identities, next_identity + count - len(matches), stayed / remaining if remaining else None
