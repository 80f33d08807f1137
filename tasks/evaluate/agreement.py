"""Do clusters agree with categories? ARI, AMI, V-measure and B-cubed, with noise read in three ways.

A title with several labels is held to one: the one that most titles hold, the reference that a cluster of any size
can hope to match. One number hides noise, so there are three readings: the share of noise; the scores over titles that
are in a cluster (flattering: the hard titles are gone); the scores with every noise title as a cluster of its own
(strict, and what the plain names mean).

AMI is normalised by the arithmetic mean of the entropies; NMI is left out because it rises with the number of clusters.

References: Hubert, Arabie, *Comparing partitions*, 1985 (ARI); Vinh, Epps, Bailey, *Information theoretic measures for
clusterings comparison*, JMLR 2010 (AMI); Rosenberg, Hirschberg, *V-measure*, 2007; Bagga, Baldwin, *Algorithms for
scoring coreference chains*, 1998, and Amigó et al., *A comparison of extrinsic clustering evaluation metrics*, 2009 (B-cubed).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from storage.arrays import Ragged

NOISE = -1


def reference_labels(labels: Ragged, label_count: int, training: np.ndarray | None = None) -> np.ndarray:
    """The most frequent label of each title: int64, shape (titles,), -1 where it has none.

    Args:
        labels: Label ids of each title.
        label_count: Ids run from 0 to this, not included. Labels that equally many titles hold go to the lower id.
        training: bool, shape (titles,): the titles whose labels are counted; all, where none is given.
    """
    reference = np.full(len(labels), NOISE, dtype=np.int64)
    if not len(labels.values):
        return reference
    counted = labels.values if training is None else labels.values[np.repeat(training, labels.lengths)]
    by_frequency = np.argsort(-np.bincount(counted, minlength=label_count), kind="stable")
    place = np.empty(label_count, dtype=np.int64)
    place[by_frequency] = np.arange(label_count)
    labelled = np.flatnonzero(labels.lengths)
    reference[labelled] = by_frequency[np.minimum.reduceat(place[labels.values], labels.offsets[labelled])]
    return reference


def measure_agreement(clusters: np.ndarray, reference: np.ndarray, *, held_out: np.ndarray | None = None) -> dict[str, object]:
    """Scores a clustering.

    Args:
        clusters: Cluster of each title, shape (titles,), -1 is noise; leave placeholders out.
        reference: Reference label of each title, shape (titles,), -1 where it has none: such titles count for ``count``
            and ``noise_share`` alone.
        held_out: bool, shape (titles,): titles whose labels training did not see, scored once more apart.

    Returns:
        ``count``, ``noise_share``, ``sizes`` (see :func:`measure_sizes`), the scores with noise as singletons (``ari``, ``ami``, ``v_measure``, ``b_cubed``,
        ``b_cubed_precision``, ``b_cubed_recall``, and ``n``), and the same scores under ``non_noise`` and ``held_out``. A
        score that nothing supports is none.

    Raises:
        ValueError: Lengths differ.
    """
    for other in (reference, *(() if held_out is None else (held_out,))):
        if len(other) != len(clusters):
            raise ValueError(f"{len(clusters)} clusters but {len(other)} of what they are compared with; all must be per title")
    labelled = reference >= 0
    singled = noise_as_singletons(clusters)
    clustered = labelled & (clusters != NOISE)
    apart = np.zeros(len(clusters), dtype=bool) if held_out is None else labelled & held_out
    return {
        "count": len(np.unique(clusters[clusters != NOISE])),
        "noise_share": float((clusters == NOISE).mean()) if len(clusters) else None,
        "sizes": measure_sizes(clusters),
        **compare(singled[labelled], reference[labelled]),
        "non_noise": compare(clusters[clustered], reference[clustered]),
        "held_out": compare(singled[apart], reference[apart]),
    }


def measure_sizes(clusters: np.ndarray) -> dict[str, float | int | None]:
    """Titles of the smallest, median and largest cluster, and the share of all titles in the largest; all none where there is no cluster."""
    sizes = np.unique(clusters[clusters != NOISE], return_counts=True)[1]
    if not len(sizes):
        return dict.fromkeys(("smallest", "median", "largest", "largest_share"))
    return {"smallest": int(sizes.min()), "median": float(np.median(sizes)), "largest": int(sizes.max()), "largest_share": float(sizes.max() / len(clusters))}


def noise_as_singletons(clusters: np.ndarray) -> np.ndarray:
    """The clustering with every noise title in a new cluster of its own: int64, shape (titles,)."""
    singled = clusters.astype(np.int64)
    noise = np.flatnonzero(clusters == NOISE)
    singled[noise] = singled.max(initial=-1) + 1 + np.arange(len(noise))
    return singled


def compare(clusters: np.ndarray, reference: np.ndarray) -> dict[str, float | int | None]:
    """ARI, AMI, V-measure and B-cubed of two partitions, and how many titles they hold; all none where there is no title."""
    from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, v_measure_score

    if not len(clusters):
        return {**dict.fromkeys(("ari", "ami", "v_measure", "b_cubed", "b_cubed_precision", "b_cubed_recall")), "n": 0}
    precision, recall = b_cubed(clusters, reference)
    return {
        "ari": float(adjusted_rand_score(reference, clusters)),
        "ami": float(adjusted_mutual_info_score(reference, clusters)),
        "v_measure": float(v_measure_score(reference, clusters)),
        "b_cubed": 2 * precision * recall / (precision + recall),
        "b_cubed_precision": precision,
        "b_cubed_recall": recall,
        "n": len(clusters),
    }


def b_cubed(clusters: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    """B-cubed precision and recall.

    An item's precision is the share of its cluster that has its label; its recall the share of its label that is in its
    cluster; both average over items. With n_ck items of cluster c and label k, item precision is n_ck / n_c, and n_ck
    items have it: precision = (1/n) Σ n_ck² / n_c, recall = (1/n) Σ n_ck² / n_k. One pass over the contingency table.

    Args:
        clusters: Shape (titles,), one title at least.
        reference: Shape (titles,).
    """
    rows = np.unique(clusters, return_inverse=True)[1]
    columns = np.unique(reference, return_inverse=True)[1]
    table = sparse.coo_array((np.ones(len(rows)), (rows, columns))).tocsr().tocoo()  # (clusters, labels), duplicates summed
    squares = table.data**2
    cluster_sizes, label_sizes = np.bincount(rows), np.bincount(columns)
    return float((squares / cluster_sizes[table.row]).sum() / len(rows)), float((squares / label_sizes[table.col]).sum() / len(rows))
