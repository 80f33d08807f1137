"""What any predictor of categories says of a title, in one form, so that all of them are scored by the same code.

A predictor gives every label a score; the labels are ranked by it. Equal scores go to the label that more training
titles hold, and labels equal even in that to a fixed shuffle of the label ids: never to a name, because labels that
always stand together ("movie", "action") tie by construction and an alphabetical winner costs up to three points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from storage.arrays import Ragged

SHUFFLE = 2_654_435_761  # odd, about 2**32 / golden ratio: multiplying by it permutes the 32-bit numbers


@dataclass(frozen=True)
class LabelledTitles:
    """Training titles with their categories; every title holds at least one.

    Attributes:
        texts: The titles, as text.
        labels: Label ids of each title.
        label_count: How many labels there are; ids run from 0.

    Raises:
        ValueError: Texts and labels differ in number, an id is out of range, or a title holds no label.
    """

    texts: Sequence[str]
    labels: Ragged
    label_count: int

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels):
            raise ValueError(f"{len(self.texts)} texts for {len(self.labels)} rows of labels; there must be one text a row")
        values = self.labels.values
        if len(values) and (values.min() < 0 or values.max() >= self.label_count):
            raise ValueError(f"label ids must lie in 0 … {self.label_count - 1}, got {values.min()} … {values.max()}")
        if (self.labels.lengths == 0).any():
            raise ValueError(f"title {int(np.flatnonzero(self.labels.lengths == 0)[0])} holds no label; pass labelled titles only")

    @cached_property
    def frequency(self) -> np.ndarray:
        """Titles that hold each label: int64, shape (labels,)."""
        return np.bincount(self.labels.values, minlength=self.label_count)


@dataclass(frozen=True)
class Predictions:
    """What a predictor says of some titles.

    Attributes:
        ranks: int32, shape (queries, labels): 1 for the label thought likeliest.
        predicted: bool, shape (queries, labels): the labels it would write on the title, one at least.
        neighbours: int64, shape (queries, k): rows of the training titles it leaned on, best first, -1 where absent;
            none where the predictor has no neighbours.
    """

    ranks: np.ndarray
    predicted: np.ndarray
    neighbours: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.ranks)

    @property
    def top(self) -> np.ndarray:
        """The likeliest label of each query: int64, shape (queries,)."""
        return self.ranks.argmin(axis=1)

    def take(self, rows: np.ndarray) -> Predictions:
        """The predictions of some queries."""
        return Predictions(self.ranks[rows], self.predicted[rows], None if self.neighbours is None else self.neighbours[rows])


class Predictor(Protocol):
    """A fitted baseline."""

    def predict(self, texts: Sequence[str]) -> Predictions:
        """Says which labels the titles hold."""
        ...


def predict_from_scores(scores: np.ndarray, written: np.ndarray, frequency: np.ndarray, neighbours: np.ndarray | None = None) -> Predictions:
    """Turns scores into predictions.

    Args:
        scores: float64, shape (queries, labels), greater is likelier; minus infinity is allowed.
        written: bool, shape (queries, labels): labels whose score passes the predictor's own threshold. Where none
            does, the first of the ranking is written, because every scored title holds one.
        frequency: Training titles that hold each label, shape (labels,).
        neighbours: Handed through.

    Raises:
        ValueError: A score is not a number, or shapes do not fit.
    """
    if scores.ndim != 2 or scores.shape != written.shape or scores.shape[1:] != frequency.shape:
        raise ValueError(f"scores and written must be (queries, labels) and frequency (labels,), got {scores.shape}, {written.shape} and {frequency.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"{int(np.isnan(scores).any(axis=1).sum())} of {len(scores)} queries have a score that is not a number")
    ranks = rank_labels(scores, frequency)
    nothing = ~written.any(axis=1, keepdims=True)
    return Predictions(ranks, written | (nothing & (ranks == 1)), neighbours)


def rank_labels(scores: np.ndarray, frequency: np.ndarray) -> np.ndarray:
    """Ranks of the labels by score, then by frequency in training, then by a fixed shuffle.

    Args:
        scores: Shape (queries, labels).
        frequency: Shape (labels,).

    Returns:
        int32, shape (queries, labels), 1 is best; each row is a permutation.
    """
    label_count = len(frequency)
    shuffled = np.arange(label_count, dtype=np.uint64) * SHUFFLE % 2**32
    tie_order = np.lexsort((shuffled, -frequency))  # a stable sort of columns in this order leaves ties in it
    order = np.argsort(-scores[:, tie_order], axis=1, kind="stable")
    ranked = np.empty(scores.shape, dtype=np.int32)
    np.put_along_axis(ranked, order, np.arange(1, label_count + 1, dtype=np.int32)[None, :], axis=1)
    ranks = np.empty_like(ranked)
    ranks[:, tie_order] = ranked
    return ranks
