"""Measures how well clusters agree with categories: ARI, AMI, V-measure and B-cubed.

If a title has several labels (categories), its most frequent label is used. Noise titles are in no cluster;
their share is reported. All scores are computed in two ways: with each noise title as a cluster of one title
(the default), and without noise titles. The second way is optimistic, because difficult titles are excluded.
AMI is normalized by the arithmetic mean of the entropies. NMI is not reported, because it rises with the
number of clusters.

References: Hubert, Arabie, *Comparing partitions*, 1985 (ARI); Vinh, Epps, Bailey, *Information theoretic
measures for clusterings comparison*, 2010 (AMI); Rosenberg, Hirschberg, *V-measure*, 2007; Bagga, Baldwin,
*Algorithms for scoring coreference chains*, 1998; Amigó et al., *A comparison of … metrics*, 2009 (B-cubed).
"""

import numpy as np

from storage.arrays import Ragged
from storage.shapes import Bool, Float, Int, Int64

NOISE = -1  # cluster of a title that is in no cluster
_TitleIds = Int[np.ndarray, " titles"]  # cluster or label of each title
SCORES = ("ari", "ami", "v_measure", "b_cubed", "b_cubed_precision", "b_cubed_recall")


def reference_labels(
    labels: Ragged, label_count: int, training: Bool[np.ndarray, " titles"] | None = None
) -> Int64[np.ndarray, " titles"]:
    """Selects one label per title: the label that most titles have among the labels of the title.

    Args:
        labels: Label ids of each title.
        label_count: Number of label ids.
        training: Marks the titles in which frequencies are counted; None: in all titles.

    Returns:
        Label id of each title, or -1 for a title without labels. Of equally frequent labels, the label with
        the lowest id is selected.
    """
    reference = np.full(len(labels), -1, dtype=np.int64)
    labelled_rows = np.flatnonzero(labels.lengths)
    if len(labelled_rows):
        values = labels.values if training is None else labels.values[np.repeat(training, labels.lengths)]
        by_frequency = np.argsort(-np.bincount(values, minlength=label_count), kind="stable")
        rank = np.argsort(by_frequency)
        best_rank = np.minimum.reduceat(rank[labels.values], labels.offsets[labelled_rows])
        reference[labelled_rows] = by_frequency[best_rank]
    return reference


def measure_agreement(
    clusters: np.ndarray, reference: np.ndarray, *, held_out: np.ndarray | None = None
) -> dict[str, object]:
    """Measures the agreement of clusters with labels, for the section "clusters" of scores.json.

    Args:
        clusters: Cluster of each title; -1 is noise.
        reference: Label of each title; -1 if it has none.
        held_out: Marks the titles that were not used in training; None if there are no such titles.

    Returns:
        ``count`` and ``sizes`` of the clusters, ``noise_share``, and the SCORES of all labelled titles, with
        each noise title as a cluster. ``non_noise`` contains the SCORES of the titles that are not noise, and
        ``held_out`` the SCORES of the held-out titles. Undefined scores are None.
    """
    is_held_out = np.zeros(len(clusters), dtype=bool) if held_out is None else held_out
    if not len(clusters) == len(reference) == len(is_held_out):
        raise ValueError(
            f"clusters, reference and held_out have {len(clusters)}, {len(reference)} and {len(is_held_out)} "
            "entries; pass one entry per title"
        )
    is_labelled, is_clustered = reference >= 0, clusters != NOISE
    with_singletons = noise_as_singletons(clusters)

    def score_rows(partition: np.ndarray, rows: np.ndarray) -> dict[str, float | int | None]:
        return score_partition(partition[rows & is_labelled], reference[rows & is_labelled])

    return {
        "count": len(np.unique(clusters[is_clustered])),
        "noise_share": float((~is_clustered).mean()) if len(clusters) else None,
        "sizes": measure_sizes(clusters),
        **score_rows(with_singletons, is_labelled),
        "non_noise": score_rows(clusters, is_clustered),
        "held_out": score_rows(with_singletons, is_held_out),
    }


def measure_sizes(clusters: _TitleIds) -> dict[str, float | int | None]:
    """Computes the smallest, median and largest cluster size, and the share of titles in the largest cluster.

    The values are None if there are no clusters.
    """
    sizes = np.unique(clusters[clusters != NOISE], return_counts=True)[1]
    if not len(sizes):
        return dict.fromkeys(("smallest", "median", "largest", "largest_share"))
    return {
        "smallest": int(sizes.min()),
        "median": float(np.median(sizes)),
        "largest": int(sizes.max()),
        "largest_share": int(sizes.max()) / len(clusters),
    }


def noise_as_singletons(clusters: _TitleIds) -> Int64[np.ndarray, " titles"]:
    """Returns a copy of ``clusters`` in which each noise title is in a new cluster with this title only."""
    with_singletons = clusters.astype(np.int64)
    noise_rows = np.flatnonzero(clusters == NOISE)
    with_singletons[noise_rows] = with_singletons.max(initial=-1) + 1 + np.arange(len(noise_rows))
    return with_singletons


def score_partition(clusters: _TitleIds, reference: _TitleIds) -> dict[str, float | int | None]:
    """Compares clusters with labels; returns the SCORES, and ``n``, the number of titles.

    ``clusters`` and ``reference`` are the cluster and the label of each title. Without titles, the scores are
    None.
    """
    from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, v_measure_score

    if not len(clusters):
        return {**dict.fromkeys(SCORES), "n": 0}
    score_functions = (adjusted_rand_score, adjusted_mutual_info_score, v_measure_score)
    precision, recall = b_cubed(clusters, reference)
    values = [float(score(reference, clusters)) for score in score_functions]
    values += [2 * precision * recall / (precision + recall), precision, recall]
    return {**dict(zip(SCORES, values, strict=True)), "n": len(clusters)}


def b_cubed(clusters: _TitleIds, reference: _TitleIds) -> tuple[float, float]:
    """Computes B-cubed precision and recall: means over all titles, of which there must be at least one."""
    precision, recall = b_cubed_per_title(clusters, reference)
    return float(precision.mean()), float(recall.mean())


def b_cubed_per_title(
    clusters: _TitleIds, reference: _TitleIds
) -> tuple[Float[np.ndarray, " titles"], Float[np.ndarray, " titles"]]:
    """Computes B-cubed precision n_ck / n_c and recall n_ck / n_k of each title.

    For a title in cluster c with label k, n_c is the number of titles in c, n_k the number of titles with k,
    and n_ck the number of titles with both.
    """
    rows, columns = (np.unique(ids, return_inverse=True)[1] for ids in (clusters, reference))
    pair_ids = np.unique(rows * (columns.max(initial=0) + 1) + columns, return_inverse=True)[1]
    shared_counts = np.bincount(pair_ids)[pair_ids]
    return shared_counts / np.bincount(rows)[rows], shared_counts / np.bincount(columns)[columns]
