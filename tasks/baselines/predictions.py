"""Predictions, the result of all predictors of categories, and the vote of nearest neighbours.

A predictor gives every label a score, by which labels are ranked. In a tie, the label with more training
titles comes first. If these are equal, too, a fixed permutation of the label ids decides: labels that always
occur together ("movie", "action") always tie, and alphabetical order lowers the accuracy by up to three
points.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from storage.arrays import Ragged
from tasks.baselines.inputs import TitleInputs
from tasks.baselines.nearest import nearest_rows
from tasks.neighbours.similarity import top_neighbours

SHUFFLE = 2_654_435_761  # odd, about 2**32 / golden ratio: multiplication permutes the 32-bit integers
DECIMALS = 6  # sums of float32 similarities are rounded, so ties do not depend on the order of summation


@dataclass(frozen=True)
class LabelledTitles:
    """Training titles of a baseline. Each has at least one label, and label ids are below ``label_count``."""

    titles: TitleInputs
    labels: Ragged
    label_count: int

    def __post_init__(self) -> None:
        values, unlabelled_rows = self.labels.values, np.flatnonzero(self.labels.lengths == 0)
        if len(self.titles) != len(self.labels):
            raise ValueError(
                f"{len(self.titles)} titles for {len(self.labels)} rows of labels; give one title per row"
            )
        if len(values) and (values.min() < 0 or values.max() >= self.label_count):
            raise ValueError(
                f"label ids must lie in 0 … {self.label_count - 1}, got {values.min()} … {values.max()}"
            )
        if len(unlabelled_rows):
            raise ValueError(f"title {unlabelled_rows[0]} holds no label; pass labelled titles only")

    @cached_property
    def frequency(self) -> np.ndarray:
        """Number of titles with each label: int64, shape (labels,)."""
        return np.bincount(self.labels.values, minlength=self.label_count)


@dataclass(frozen=True)
class Predictions:
    """Labels that a model predicts for titles (queries). Arrays have one row per title."""

    ranks: np.ndarray  # int32 (queries, labels), 1 for the most likely label
    predicted: np.ndarray  # bool (queries, labels), whether a label is predicted; at least one per query
    neighbours: np.ndarray | None = None  # int64 (queries, k): rows of training titles, nearest first, or -1

    def __len__(self) -> int:
        return len(self.ranks)

    @property
    def top(self) -> np.ndarray:
        """Most likely label of each query."""
        return self.ranks.argmin(axis=1)


def predict_from_scores(
    scores: np.ndarray,
    above_threshold: np.ndarray,
    frequency: np.ndarray,
    neighbours: np.ndarray | None = None,
) -> Predictions:
    """Creates predictions from the scores that a model gives to labels.

    Args:
        scores: float64 (queries, labels); the label with the highest score is the most likely.
        above_threshold: bool (queries, labels), which labels are predicted because their score is above a
            threshold. If there is none, the label with the highest score is predicted.
        frequency: Number of training titles with each label.
        neighbours: Nearest training titles, if the predictor uses any.
    """
    if scores.ndim != 2 or scores.shape != above_threshold.shape or scores.shape[1:] != frequency.shape:
        raise ValueError(
            "scores and above_threshold must be (queries, labels) and frequency (labels,), got "
            f"{scores.shape}, {above_threshold.shape} and {frequency.shape}"
        )
    if nan := int(np.isnan(scores).any(axis=1).sum()):
        raise ValueError(f"{nan} of {len(scores)} queries have a score that is not a number")
    ranks = rank_labels(scores, frequency)
    has_none = ~above_threshold.any(axis=1, keepdims=True)
    return Predictions(ranks, above_threshold | (has_none & (ranks == 1)), neighbours)


def rank_labels(scores: np.ndarray, frequency: np.ndarray) -> np.ndarray:
    """Returns the rank of each label by score, frequency and a fixed permutation. Rank 1 is the best."""
    shuffled = np.arange(len(frequency), dtype=np.uint64) * SHUFFLE % 2**32
    tie_order = np.lexsort((shuffled, -frequency))  # a stable sort keeps this order for ties
    order = tie_order[np.argsort(-scores[:, tie_order], axis=1, kind="stable")]
    ranks = np.empty(scores.shape, dtype=np.int32)
    np.put_along_axis(ranks, order, np.arange(1, len(frequency) + 1, dtype=np.int32)[None, :], axis=1)
    return ranks


def vote(
    neighbours: np.ndarray, similarities: np.ndarray, labels: Ragged, frequency: np.ndarray
) -> Predictions:
    """Predicts the labels of titles by the vote of their nearest training titles.

    Each neighbour votes for its labels. Labels are ranked by the number of votes, then by the summed
    similarity of the voters, then by frequency in training. A label is predicted if at least half of the
    neighbours vote for it; if there is none, the first label is predicted. ``neighbours``, int64 (queries,
    k), are rows of ``labels``, or -1. Without neighbours, the most frequent label is predicted.
    """
    if neighbours.shape != similarities.shape or neighbours.ndim != 2:
        raise ValueError(
            f"neighbours and similarities must both be (queries, k), got {neighbours.shape} and "
            f"{similarities.shape}"
        )
    (query_count, k), label_count = neighbours.shape, len(frequency)
    rows, columns = np.nonzero(neighbours >= 0)
    vote_labels = labels.take(neighbours[rows, columns])
    weights = similarities[rows, columns].astype(np.float64)
    if not (np.abs(weights) <= 1 + 1e-3).all():
        raise ValueError("similarities must lie between -1 and 1: are the vectors finite and of unit norm?")
    # number of the pair (query, label) of each vote
    cells = np.repeat(rows, vote_labels.lengths) * label_count + vote_labels.values
    votes, summed_similarities = (
        np.bincount(cells, summands, query_count * label_count).reshape(query_count, label_count)
        for summands in (None, np.repeat(weights, vote_labels.lengths))
    )
    # An additional vote outweighs any sum of similarities; exact in float64 up to k = 40,000.
    scores = votes * float(4 * k * 10**DECIMALS) + np.rint(summed_similarities * 10**DECIMALS)
    neighbour_counts = (neighbours >= 0).sum(axis=1, keepdims=True)
    return predict_from_scores(scores, (votes > 0) & (2 * votes >= neighbour_counts), frequency, neighbours)


def top_by_cosine(queries: Any, base: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Finds the k rows of ``base`` with the largest positive cosine. In a tie, the lower id is first.

    ``queries`` and ``base`` are arrays of unit-norm (or zero) rows, or CSR matrices, of shape (titles,
    features). Returns ids, int64, and cosines, float32, (queries, k); -1 and 0 if there are fewer rows.
    """
    if not isinstance(queries, np.ndarray):
        return nearest_rows(queries, base, k)
    ids, cosines = top_neighbours(queries, base, k)
    return np.where(cosines > 0, ids, -1), np.maximum(cosines, 0)
