"""Computes five metrics of predictors of categories (labels) from their predictions for held-out titles.

- accuracy: share of titles whose top label is correct.
- micro-F1: 2 tp / (2 tp + fp + fn) over all (title, label) pairs.
- macro-F1: mean F1 over the labels of the scored titles.
- precision at k: share of the k neighbours of a title that have one of its labels, averaged over titles. It
  is 0 for a title without neighbours, and None for predictors other than k-NN.
- mrr: mean reciprocal rank, the mean of 1 / rank of the best-ranked correct label.

All metrics are computed from sums over titles, so the bootstrap needs only the sums of each group of titles.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from storage.arrays import Ragged
from storage.shapes import Bool, Float, Int
from tasks.baselines.predictions import Predictions

METRICS = ("accuracy", "micro_f1", "macro_f1", "precision_at_k", "mrr")


@dataclass(frozen=True)
class Judged:
    """Predictions for titles (queries), compared with the true labels. Arrays have one entry per query."""

    correct: Bool[np.ndarray, " queries"]  # whether the top label is correct
    reciprocal_rank: Float[np.ndarray, " queries"]  # 1 / rank of the best-ranked correct label
    precision_at_k: Float[np.ndarray, " queries"] | None  # None for predictors without neighbours
    predicted: Bool[np.ndarray, "queries labels"]  # whether each label is predicted
    truth: Bool[np.ndarray, "queries labels"]  # whether each label is correct

    def __len__(self) -> int:
        return len(self.correct)

    def take(self, rows: np.ndarray) -> Self:
        """Selects queries by ``rows``: indices or a mask."""
        columns = {name: column if column is None else column[rows] for name, column in vars(self).items()}
        return replace(self, **columns)


def judge(predictions: Predictions, labels: Ragged, training_labels: Ragged) -> Judged:
    """Compares predictions with the true labels of the queries.

    Args:
        predictions: Predictions for the queries; ``neighbours`` are row numbers of ``training_labels``.
        labels: True label ids of the queries, at least one per query.
        training_labels: Label ids of each training title.
    """
    if len(predictions) != len(labels):
        raise ValueError(
            f"{len(predictions)} predictions for {len(labels)} titles; pass one prediction per title"
        )
    if len(unlabelled_rows := np.flatnonzero(labels.lengths == 0)):
        raise ValueError(f"query {unlabelled_rows[0]} has no label; pass only titles that have labels")
    label_count = predictions.ranks.shape[1]
    truth = labels.multi_hot(label_count)
    first_rank = np.where(truth, predictions.ranks, label_count + 1).min(axis=1, initial=label_count + 1)
    neighbours = predictions.neighbours
    precision = None if neighbours is None else neighbour_precision(neighbours, truth, training_labels)
    return Judged(first_rank == 1, 1.0 / first_rank, precision, predictions.predicted, truth)


def neighbour_precision(
    neighbours: Int[np.ndarray, "queries k"],
    truth: Bool[np.ndarray, "queries labels"],
    training_labels: Ragged,
) -> Float[np.ndarray, " queries"]:
    """Computes for each query the share of the neighbours that have a label of the query.

    Args:
        neighbours: Neighbours of each query as row numbers of ``training_labels``; -1: no neighbour.
        truth: Marks the true labels of each query.
        training_labels: Label ids of each training title.
    """
    matches = share_value(neighbours, truth, training_labels).sum(axis=1)
    return matches / np.maximum((neighbours >= 0).sum(axis=1), 1)


def share_value(
    neighbours: Int[np.ndarray, "queries k"], has_value: Bool[np.ndarray, "queries values"], values: Ragged
) -> Bool[np.ndarray, "queries k"]:
    """Returns whether each neighbour and its query have a value (label, channel) in common.

    Args:
        neighbours: Neighbours of each query as row numbers of ``values``; -1: no neighbour.
        has_value: Whether each query has each value.
        values: Values of all titles that may be neighbours.
    """
    rows, columns = np.nonzero(neighbours >= 0)
    neighbour_values = values.take(neighbours[rows, columns])
    ids = neighbour_values.row_ids  # neighbour in each pair (neighbour, value)
    is_common = has_value[rows[ids], neighbour_values.values]
    is_shared = np.zeros(neighbours.shape, dtype=bool)
    is_shared[rows, columns] = np.bincount(ids, weights=is_common, minlength=len(rows)) > 0
    return is_shared


def measure(judged: Judged) -> dict[str, float | None]:
    """Computes the METRICS over all queries; they are None if there are no queries."""
    if not len(judged):
        return dict.fromkeys(METRICS)
    one_group = np.zeros(len(judged), dtype=np.int64)
    metrics = measure_weighted(judged, one_group, np.ones((1, 1), dtype=np.float32))
    return {name: None if values is None else float(values[0]) for name, values in metrics.items()}


def measure_weighted(
    judged: Judged, groups: Int[np.ndarray, " queries"], counts: Float[np.ndarray, "resamples groups"]
) -> dict[str, np.ndarray | None]:
    """Computes the METRICS of each bootstrap resample.

    Args:
        judged: Predictions compared with the true labels.
        groups: Group of each query.
        counts: How often each resample contains the queries of each group.
    """
    from scipy import sparse

    shape, columns = (counts.shape[1], len(judged)), np.arange(len(judged))
    # (groups, queries), 1 if the query is in the group
    members = sparse.csr_array((np.ones(len(judged), np.float32), (groups, columns)), shape=shape)
    counts64 = counts.astype(np.float64)
    size = counts64 @ members.sum(axis=1)  # number of queries of each resample

    def mean(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else counts64 @ (members @ values) / size

    def sum_cells(cells: np.ndarray) -> np.ndarray:  # (resamples, labels); integers below 2**24 are exact
        return counts @ (members @ cells.astype(np.float32))

    true_positives = sum_cells(judged.predicted & judged.truth)
    true_counts = sum_cells(judged.truth)
    sums = sum_cells(judged.predicted) + true_counts
    label_f1 = np.where(true_counts > 0, 2 * true_positives / np.maximum(sums, 1), 0)
    return {
        "accuracy": mean(judged.correct.astype(np.float64)),
        "micro_f1": 2 * true_positives.sum(axis=1, dtype=np.float64) / sums.sum(axis=1, dtype=np.float64),
        "macro_f1": label_f1.sum(axis=1, dtype=np.float64) / (true_counts > 0).sum(axis=1),
        "precision_at_k": mean(judged.precision_at_k),
        "mrr": mean(judged.reciprocal_rank),
    }
