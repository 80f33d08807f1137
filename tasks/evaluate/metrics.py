"""The five numbers a predictor of categories is judged by.

- accuracy: share of titles whose likeliest label is one of their own.
- micro-F1: 2 tp / (2 tp + fp + fn) over all (title, label) pairs.
- macro-F1: the mean of the labels' F1, over the labels that some scored title holds: the same labels for every
  predictor, so that writing a label nobody holds costs micro-F1 but does not change what macro-F1 averages over.
- precision@10: share of a title's first ten neighbours that share a label with it; 0 for a title without neighbours,
  nothing for a predictor without.
- mrr: mean of 1 / rank of the first of a title's own labels.

All are functions of sums over titles, so a bootstrap over groups needs the groups' sums only (bootstrap.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from storage.arrays import Ragged
from tasks.baselines.predictions import Predictions

METRICS = ("accuracy", "micro_f1", "macro_f1", "precision_at_10", "mrr")


@dataclass(frozen=True)
class Judged:
    """Predictions beside the truth, a row a query.

    Attributes:
        correct: bool, shape (queries,): the top label is one of the title's.
        reciprocal_rank: float64, shape (queries,).
        precision_at_10: float64, shape (queries,), or none without neighbours.
        predicted: bool, shape (queries, labels).
        truth: bool, shape (queries, labels).
    """

    correct: np.ndarray
    reciprocal_rank: np.ndarray
    precision_at_10: np.ndarray | None
    predicted: np.ndarray
    truth: np.ndarray

    def __len__(self) -> int:
        return len(self.correct)

    def take(self, rows: np.ndarray) -> Judged:
        """Some queries, by row or by mask."""
        precision = None if self.precision_at_10 is None else self.precision_at_10[rows]
        return Judged(self.correct[rows], self.reciprocal_rank[rows], precision, self.predicted[rows], self.truth[rows])


def judge(predictions: Predictions, labels: Ragged, training_labels: Ragged) -> Judged:
    """Holds predictions against the labels the titles have.

    Args:
        predictions: Of the queries.
        labels: Label ids of the queries, none of them empty.
        training_labels: Label ids of the titles that ``predictions.neighbours`` names.

    Raises:
        ValueError: Numbers of rows differ, or a query holds no label.
    """
    if len(predictions) != len(labels):
        raise ValueError(f"{len(predictions)} predictions for {len(labels)} titles")
    if (labels.lengths == 0).any():
        raise ValueError(f"query {int(np.flatnonzero(labels.lengths == 0)[0])} holds no label; only labelled titles can be scored")
    label_count = predictions.ranks.shape[1]
    truth = labels.members(label_count)
    first = np.where(truth, predictions.ranks, label_count + 1).min(axis=1, initial=label_count + 1)
    precision = None if predictions.neighbours is None else share_of_alike(predictions.neighbours[:, :10], truth, training_labels)
    return Judged(first == 1, 1.0 / first, precision, predictions.predicted, truth)


def share_of_alike(neighbours: np.ndarray, truth: np.ndarray, training_labels: Ragged) -> np.ndarray:
    """Share of each query's neighbours that hold one of its labels.

    Args:
        neighbours: int64, shape (queries, k), -1 where absent: absent ones do not count, a query without any gets 0.
        truth: bool, shape (queries, labels).
        training_labels: Label ids of the neighbours.

    Returns:
        float64, shape (queries,).
    """
    rows, places = np.nonzero(neighbours >= 0)
    theirs = training_labels.take(neighbours[rows, places])
    entries = theirs.owners  # one an entry (neighbour, label): the neighbour
    alike = np.bincount(entries, weights=truth[rows[entries], theirs.values], minlength=len(rows)) > 0
    shared = np.bincount(rows, weights=alike, minlength=len(neighbours))
    return shared / np.maximum((neighbours >= 0).sum(axis=1), 1)


def measure(judged: Judged) -> dict[str, float | None]:
    """The five numbers; all none where there is no query."""
    if not len(judged):
        return dict.fromkeys(METRICS)
    whole = GroupSums.of(judged, np.zeros(len(judged), dtype=np.int64))
    measured = measure_weighted(whole, np.ones((1, 1), dtype=np.float32))
    return {name: None if values is None else float(values[0]) for name, values in measured.items()}


@dataclass(frozen=True)
class GroupSums:
    """What the five numbers need of each group of queries.

    Attributes:
        size, correct, reciprocal_rank, precision: float64, shape (groups,); precision may be none.
        hits, writes, holds: float32, shape (groups, labels): how often a label was rightly written, written, held.
            Whole numbers below 2**24, so exact.
    """

    size: np.ndarray
    correct: np.ndarray
    reciprocal_rank: np.ndarray
    precision: np.ndarray | None
    hits: np.ndarray
    writes: np.ndarray
    holds: np.ndarray

    @staticmethod
    def of(judged: Judged, groups: np.ndarray) -> GroupSums:
        """Sums over each group.

        Args:
            judged: The queries.
            groups: Group of each query, shape (queries,), numbered from 0 without gaps.
        """
        count = int(groups.max()) + 1 if len(groups) else 0
        order = np.argsort(groups, kind="stable")
        starts = np.searchsorted(groups[order], np.arange(count))

        def summed(values: np.ndarray) -> np.ndarray:
            return np.bincount(groups, weights=values, minlength=count)

        def summed_labels(cells: np.ndarray) -> np.ndarray:
            return np.add.reduceat(cells[order].astype(np.float32), starts, axis=0)

        return GroupSums(
            size=summed(np.ones(len(judged))),
            correct=summed(judged.correct),
            reciprocal_rank=summed(judged.reciprocal_rank),
            precision=None if judged.precision_at_10 is None else summed(judged.precision_at_10),
            hits=summed_labels(judged.predicted & judged.truth),
            writes=summed_labels(judged.predicted),
            holds=summed_labels(judged.truth),
        )


def measure_weighted(sums: GroupSums, counts: np.ndarray) -> dict[str, np.ndarray | None]:
    """The five numbers where each group counts several times.

    Args:
        sums: Of each group.
        counts: float32, shape (resamples, groups): how often a group counts; at least one group in each row.

    Returns:
        Metric to float64, shape (resamples,).
    """
    exact = counts.astype(np.float64)
    size = exact @ sums.size
    hits, writes, holds = counts @ sums.hits, counts @ sums.writes, counts @ sums.holds  # (resamples, labels)
    held = holds > 0
    label_f1 = 2 * hits / np.maximum(writes + holds, 1)
    total_hits, total = hits.sum(axis=1, dtype=np.float64), (writes + holds).sum(axis=1, dtype=np.float64)
    return {
        "accuracy": exact @ sums.correct / size,
        "micro_f1": 2 * total_hits / total,
        "macro_f1": np.where(held, label_f1, 0).sum(axis=1, dtype=np.float64) / held.sum(axis=1),
        "precision_at_10": None if sums.precision is None else exact @ sums.precision / size,
        "mrr": exact @ sums.reciprocal_rank / size,
    }
