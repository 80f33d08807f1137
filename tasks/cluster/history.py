"""Assigns an identity to each cluster, so that the cluster keeps its number and colour from run to run.

The id of a cluster is its rank by size, which changes between runs. A cluster takes over the *identity* of
the cluster of the previous run with which it has the most titles in common. The common titles must be more
than half of the titles of the smaller cluster, counting only titles that occur in both runs. Pairs of
clusters are matched in the order of their number of common titles, and an identity is assigned only once. All
other clusters get new identities and the first free colours of the palette.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from storage.shapes import Int

MIN_SHARE = 0.5  # minimum overlap, as a share of the titles of the smaller cluster that are in both runs


@dataclass(frozen=True)
class Identity:
    """Number and colour by which users recognize a cluster in several runs."""

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
        previous: Maps the show keys of the clustered titles of the previous run to clusters; None without a
            previous run.
        previous_identities: Identity of each cluster of the previous run.
        next_identity: First unused number of an identity.

    Returns:
        The identity of each cluster; the first number that is still unused; and the share of titles that
        stayed in a cluster with the same identity, among the titles of this run that were in a cluster of
        the previous run (None if there are no such titles).
    """
    count = int(clusters.max(initial=-1)) + 1
    previous_clusters = np.array([(previous or {}).get(show, -1) for show in shows], dtype=np.int64)
    in_both = (previous_clusters >= 0) & (clusters >= 0)
    cluster_pairs = np.stack([clusters[in_both], previous_clusters[in_both]])
    pairs, sizes = np.unique(cluster_pairs, axis=1, return_counts=True)
    new_sizes = np.bincount(clusters[in_both], minlength=count)
    old_sizes = np.bincount(previous_clusters[previous_clusters >= 0], minlength=len(previous_identities))
    predecessors: dict[int, int] = {}  # cluster of the previous run by cluster of this run
    stayed_count = 0
    for index in np.lexsort((pairs[1], pairs[0], -sizes)).tolist():
        cluster, old_cluster = pairs[:, index].tolist()
        is_majority = sizes[index] > MIN_SHARE * min(new_sizes[cluster], old_sizes[old_cluster])
        if is_majority and cluster not in predecessors and old_cluster not in predecessors.values():
            predecessors[cluster] = old_cluster
            stayed_count += int(sizes[index])
    used_colours = {previous_identities[old_cluster].colour for old_cluster in predecessors.values()}
    free_colours = (colour for colour in range(count + len(used_colours)) if colour not in used_colours)
    identities = []
    for cluster in range(count):
        if cluster in predecessors:
            identities.append(previous_identities[predecessors[cluster]])
        else:
            identities.append(Identity(next_identity, next(free_colours)))
            next_identity += 1
    clustered_before = int((previous_clusters >= 0).sum())
    return identities, next_identity, stayed_count / clustered_before if clustered_before else None
