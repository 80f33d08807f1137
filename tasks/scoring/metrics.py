"""Five metrics of predictors of categories.

- accuracy: share of titles whose top-ranked label is correct.
- micro-F1: 2 tp / (2 tp + fp + fn) over all (title, label) pairs.
- macro-F1: mean F1 over the labels that scored titles have; these are the same for every predictor.
- precision at k: share of the k neighbours of a title that have one of its labels; 0 without neighbours, None
  for predictors other than k-NN.
- mrr: mean of 1 / rank of the best-ranked correct label.

All are functions of sums over titles, so the bootstrap over groups needs only the sums per group.
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
    """Predictions compared with the labels of titles."""

    correct: Bool[np.ndarray, " queries"]  # whether the top label is correct
    reciprocal_rank: Float[np.ndarray, " queries"]  # 1 / rank of the best-ranked correct label
    precision_at_k: Float[np.ndarray, " queries"] | None
    predicted: Bool[np.ndarray, "queries labels"]
    truth: Bool[np.ndarray, "queries labels"]

    def __len__(self) -> int:
        return len(self.correct)

    def take(self, rows: np.ndarray) -> Self:
        """Selects queries by row or mask."""
        columns = {name: column if column is None else column[rows] for name, column in vars(self).items()}
        return replace(self, **columns)


def judge(predictions: Predictions, labels: Ragged, training_labels: Ragged) -> Judged:
    """Compares predictions with the labels of the queries.

    ``training_labels`` are the labels of the training titles; ``predictions.neighbours`` are their row
    numbers.
    """
    if len(predictions) != len(labels):
        raise ValueError(f"{len(predictions)} predictions for {len(labels)} titles")
    if len(empty := np.flatnonzero(labels.lengths == 0)):
        raise ValueError(f"query {empty[0]} holds no label; only labelled titles can be scored")
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
    """Computes the share of the neighbours of each query that have one of its labels.

    ``neighbours`` are rows of ``training_labels``; -1 stands for no neighbour.
    """
    rows, columns = np.nonzero(neighbours >= 0)
    neighbour_labels = training_labels.take(neighbours[rows, columns])
    entries = neighbour_labels.row_ids  # number of the neighbour of each pair (neighbour, label)
    is_shared = truth[rows[entries], neighbour_labels.values]
    is_match = np.bincount(entries, weights=is_shared, minlength=len(rows)) > 0
    matches = np.bincount(rows, weights=is_match, minlength=len(neighbours))
    return matches / np.maximum((neighbours >= 0).sum(axis=1), 1)


def measure(judged: Judged) -> dict[str, float | None]:
    """Computes the five metrics of all queries; each is None without queries."""
    if not len(judged):
        return dict.fromkeys(METRICS)
    one_group = np.zeros(len(judged), dtype=np.int64)
    measured = measure_weighted(judged, one_group, np.ones((1, 1), dtype=np.float32))
    return {name: None if values is None else float(values[0]) for name, values in measured.items()}


def measure_weighted(
    judged: Judged, groups: Int[np.ndarray, " queries"], counts: Float[np.ndarray, "resamples groups"]
) -> dict[str, np.ndarray | None]:
    """Computes the five metrics of each resample; titles of group g count ``counts[:, g]`` times in it."""
    from scipy import sparse

    shape, columns = (counts.shape[1], len(judged)), np.arange(len(judged))
    members = sparse.csr_array((np.ones(len(judged), np.float32), (groups, columns)), shape=shape)
    exact = counts.astype(np.float64)
    size = exact @ members.sum(axis=1)

    def mean(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else exact @ (members @ values) / size

    def summed(cells: np.ndarray) -> np.ndarray:  # (resamples, labels); integers below 2**24 are exact
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
