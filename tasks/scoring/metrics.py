"""The five metrics of a predictor of categories.

- accuracy: share of titles whose top label is one of their own.
- micro-F1: 2 tp / (2 tp + fp + fn) over all (title, label) pairs.
- macro-F1: mean F1 of the labels that some scored title holds: the same labels for every predictor.
- precision at k: share of a title's k neighbours with a label of its own; 0 without any, None for no k-NN.
- mrr: mean of 1 / rank of the first of a title's own labels.

All are functions of sums over titles, so the bootstrap over groups needs sums of the groups only.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy import sparse

from storage.arrays import Ragged
from storage.shapes import Bool, Float, Int
from tasks.baselines.predictions import Predictions

METRICS = ("accuracy", "micro_f1", "macro_f1", "precision_at_k", "mrr")


@dataclass(frozen=True)
class Judged:
    """Predictions compared with the labels of titles; ``correct``: the top label is one of the title's."""

    correct: Bool[np.ndarray, " queries"]
    reciprocal_rank: Float[np.ndarray, " queries"]
    precision_at_k: Float[np.ndarray, " queries"] | None
    predicted: Bool[np.ndarray, "queries labels"]
    truth: Bool[np.ndarray, "queries labels"]

    def __len__(self) -> int:
        return len(self.correct)

    def take(self, rows: np.ndarray) -> Self:
        """Some queries, by row or by mask."""
        columns = {name: own if own is None else own[rows] for name, own in vars(self).items()}
        return replace(self, **columns)


def judge(predictions: Predictions, labels: Ragged, training_labels: Ragged) -> Judged:
    """Compares predictions with the labels of the queries; ``training_labels`` are the neighbours'."""
    if len(predictions) != len(labels):
        raise ValueError(f"{len(predictions)} predictions for {len(labels)} titles")
    if len(empty := np.flatnonzero(labels.lengths == 0)):
        raise ValueError(f"query {empty[0]} holds no label; only labelled titles can be scored")
    label_count = predictions.ranks.shape[1]
    truth = labels.members(label_count)
    first = np.where(truth, predictions.ranks, label_count + 1).min(axis=1, initial=label_count + 1)
    near = predictions.neighbours
    precision = None if near is None else share_of_alike(near, truth, training_labels)
    return Judged(first == 1, 1.0 / first, precision, predictions.predicted, truth)


def share_of_alike(
    neighbours: Int[np.ndarray, "queries k"],
    truth: Bool[np.ndarray, "queries labels"],
    training_labels: Ragged,
) -> Float[np.ndarray, " queries"]:
    """Share of each query's neighbours (rows of ``training_labels``, or -1) that hold one of its labels."""
    rows, places = np.nonzero(neighbours >= 0)
    theirs = training_labels.take(neighbours[rows, places])
    entries = theirs.owners  # the neighbour of each (neighbour, label)
    alike = np.bincount(entries, weights=truth[rows[entries], theirs.values], minlength=len(rows)) > 0
    shared = np.bincount(rows, weights=alike, minlength=len(neighbours))
    return shared / np.maximum((neighbours >= 0).sum(axis=1), 1)


def measure(judged: Judged) -> dict[str, float | None]:
    """The five metrics; all None where there is no query."""
    if not len(judged):
        return dict.fromkeys(METRICS)
    whole = np.zeros(len(judged), dtype=np.int64)
    measured = measure_weighted(judged, whole, np.ones((1, 1), dtype=np.float32))
    return {name: None if values is None else float(values[0]) for name, values in measured.items()}


def measure_weighted(
    judged: Judged, groups: Int[np.ndarray, " queries"], counts: Float[np.ndarray, "resamples groups"]
) -> dict[str, np.ndarray | None]:
    """The five metrics in each resample, where a group (numbered from 0) counts ``counts`` times."""
    shape, columns = (counts.shape[1], len(judged)), np.arange(len(judged))
    members = sparse.csr_array((np.ones(len(judged), np.float32), (groups, columns)), shape=shape)
    exact = counts.astype(np.float64)
    size = exact @ members.sum(axis=1)

    def mean(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else exact @ (members @ values) / size

    def summed(cells: np.ndarray) -> np.ndarray:  # (resamples, labels); whole numbers below 2**24 are exact
        return counts @ (members @ cells.astype(np.float32))

    hits = summed(judged.predicted & judged.truth)
    holds = summed(judged.truth)
    total = summed(judged.predicted) + holds
    label_f1 = np.where(holds > 0, 2 * hits / np.maximum(total, 1), 0)
    return {
        "accuracy": mean(judged.correct.astype(np.float64)),
        "micro_f1": 2 * hits.sum(axis=1, dtype=np.float64) / total.sum(axis=1, dtype=np.float64),
        "macro_f1": label_f1.sum(axis=1, dtype=np.float64) / (holds > 0).sum(axis=1),
        "precision_at_k": mean(judged.precision_at_k),
        "mrr": mean(judged.reciprocal_rank),
    }
