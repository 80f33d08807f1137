"""Agreement of clusters with categories: ARI, AMI, V-measure and B-cubed, with three readings of noise.

A title with several labels counts for the one that most titles hold. One number hides noise, so there are
three: the share of noise; the scores over clustered titles (flattering: the hard titles are gone); the scores
with every noise title as a cluster of its own (strict, and what the plain names mean). AMI is normalised by
the arithmetic mean of the entropies; NMI is left out because it rises with the number of clusters.

References: Hubert, Arabie, *Comparing partitions*, 1985 (ARI); Vinh, Epps, Bailey, *Information theoretic
measures for clusterings comparison*, 2010 (AMI); Rosenberg, Hirschberg, *V-measure*, 2007; Bagga, Baldwin,
*Algorithms for scoring coreference chains*, 1998; Amigó et al., *A comparison of … metrics*, 2009 (B-cubed).
"""

import numpy as np

from storage.arrays import Ragged
from storage.shapes import Bool, Float, Int, Int64

NOISE = -1
_Titles = Int[np.ndarray, " titles"]
SCORES = ("ari", "ami", "v_measure", "b_cubed", "b_cubed_precision", "b_cubed_recall")


def reference_labels(
    labels: Ragged, label_count: int, training: Bool[np.ndarray, " titles"] | None = None
) -> Int64[np.ndarray, " titles"]:
    """The most frequent label (on ``training``) of each title, else -1; ties go to the lower id."""
    reference = np.full(len(labels), NOISE, dtype=np.int64)
    labelled = np.flatnonzero(labels.lengths)
    if len(labelled):
        counted = labels.values if training is None else labels.values[np.repeat(training, labels.lengths)]
        by_frequency = np.argsort(-np.bincount(counted, minlength=label_count), kind="stable")
        place = np.argsort(by_frequency)
        best = np.minimum.reduceat(place[labels.values], labels.offsets[labelled])
        reference[labelled] = by_frequency[best]
    return reference


def measure_agreement(
    clusters: np.ndarray, reference: np.ndarray, *, held_out: np.ndarray | None = None
) -> dict[str, object]:
    """Scores a clustering: SCORES with noise as singletons, and under ``non_noise`` and ``held_out``.

    -1 is noise in ``clusters``; titles with -1 in ``reference`` count for ``count``, ``noise_share`` and
    ``sizes`` only. Training saw no labels of ``held_out`` titles. A score that nothing supports is None.
    """
    apart = np.zeros(len(clusters), dtype=bool) if held_out is None else held_out
    for other in (reference, apart):
        if len(other) != len(clusters):
            raise ValueError(f"{len(clusters)} clusters but {len(other)} references; both must be per title")
    labelled, clustered = reference >= 0, clusters != NOISE
    singled = noise_as_singletons(clusters)

    def compared(partition: np.ndarray, rows: np.ndarray) -> dict[str, float | int | None]:
        return compare(partition[rows & labelled], reference[rows & labelled])

    return {
        "count": len(np.unique(clusters[clustered])),
        "noise_share": float((~clustered).mean()) if len(clusters) else None,
        "sizes": measure_sizes(clusters),
        **compared(singled, labelled),
        "non_noise": compared(clusters, clustered),
        "held_out": compared(singled, apart),
    }


def measure_sizes(clusters: _Titles) -> dict[str, float | int | None]:
    """Titles of the smallest, median and largest cluster, and the share of all titles in the largest."""
    sizes = np.unique(clusters[clusters != NOISE], return_counts=True)[1]
    if not len(sizes):
        return dict.fromkeys(("smallest", "median", "largest", "largest_share"))
    bounds = {"smallest": int(sizes.min()), "median": float(np.median(sizes)), "largest": int(sizes.max())}
    return {**bounds, "largest_share": bounds["largest"] / len(clusters)}


def noise_as_singletons(clusters: _Titles) -> Int64[np.ndarray, " titles"]:
    """The clustering with every noise title in a new cluster of its own."""
    singled = clusters.astype(np.int64)
    noise = np.flatnonzero(clusters == NOISE)
    singled[noise] = singled.max(initial=-1) + 1 + np.arange(len(noise))
    return singled


def compare(clusters: _Titles, reference: _Titles) -> dict[str, float | int | None]:
    """SCORES of two partitions, and how many titles they hold (``n``); all None where there is no title."""
    from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, v_measure_score

    if not len(clusters):
        return {**dict.fromkeys(SCORES), "n": 0}
    libraries = (adjusted_rand_score, adjusted_mutual_info_score, v_measure_score)
    precision, recall = b_cubed(clusters, reference)
    values = [float(score(reference, clusters)) for score in libraries]
    values += [2 * precision * recall / (precision + recall), precision, recall]
    return {**dict(zip(SCORES, values, strict=True)), "n": len(clusters)}


def b_cubed(clusters: _Titles, reference: _Titles) -> tuple[float, float]:
    """B-cubed precision and recall of one title or more: means of ``b_cubed_of_titles``."""
    precision, recall = b_cubed_of_titles(clusters, reference)
    return float(precision.mean()), float(recall.mean())


def b_cubed_of_titles(
    clusters: _Titles, reference: _Titles
) -> tuple[Float[np.ndarray, " titles"], Float[np.ndarray, " titles"]]:
    """A title's precision, the share of its cluster that has its label, and its recall, the share of its
    label that is in its cluster: n_ck / n_c and n_ck / n_k with n_ck titles of cluster c and label k.
    """
    rows, columns = (np.unique(own, return_inverse=True)[1] for own in (clusters, reference))
    cells = np.unique(rows * (columns.max(initial=0) + 1) + columns, return_inverse=True)[1]
    together = np.bincount(cells)[cells]
    return together / np.bincount(rows)[rows], together / np.bincount(columns)[columns]
