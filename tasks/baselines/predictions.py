"""Defines the predictions of categories, and predicts categories by the vote of nearest neighbours.

A predictor gives every label a score, by which labels are ranked. If scores are equal, the label with more
training titles comes first. If the numbers of training titles are also equal, a fixed permutation of the
label ids decides. Labels that always occur together ("movie", "action") always have equal scores.
Alphabetical order of such labels would lower the accuracy by up to three points.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from storage.arrays import Ragged
from tasks.baselines.inputs import TitleInputs

HASH_FACTOR = 2_654_435_761  # odd, so that the multiplication modulo 2**32 is a permutation of integers
DECIMALS = 6  # decimals of summed similarities, so that ties do not depend on the order of summation


@dataclass(frozen=True)
class LabelledTitles:
    """Training titles of a baseline. Every title has a label, and label ids are below ``label_count``."""

    titles: TitleInputs
    labels: Ragged
    label_count: int

    def __post_init__(self) -> None:
        values, unlabelled_rows = self.labels.values, np.flatnonzero(self.labels.lengths == 0)
        if len(self.titles) != len(self.labels):
            raise ValueError(
                f"{len(self.titles)} titles and {len(self.labels)} rows of labels; give one row per title"
            )
        if len(values) and (values.min() < 0 or values.max() >= self.label_count):
            raise ValueError(
                f"label ids must be from 0 to {self.label_count - 1}, got {values.min()} to {values.max()}"
            )
        if len(unlabelled_rows):
            raise ValueError(f"title {unlabelled_rows[0]} has no label; give only labelled titles")

    @cached_property
    def frequency(self) -> np.ndarray:
        """Number of titles with each label, int64 (labels,)."""
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
        """Id of the most likely label of each query, int64 (queries,)."""
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
        above_threshold: bool (queries, labels), whether a label is predicted because its score is above a
            threshold. If a query has no such label, the label with the highest score is predicted.
        frequency: Number of training titles with each label.
        neighbours: Nearest training titles of each query; None if the predictor uses no neighbours.
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
    """Returns the rank of each label, from 1: by score, then frequency, then a fixed permutation."""
    hashes = np.arange(len(frequency), dtype=np.uint64) * HASH_FACTOR % 2**32
    tie_order = np.lexsort((hashes, -frequency))  # a stable sort keeps this order for ties
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
    neighbours vote for it; if no label has that many votes, the label ranked first is predicted. If a title
    has no neighbours, the most frequent label is predicted.

    Args:
        neighbours: Row numbers in ``labels`` of the nearest training titles, int64 (queries, k), or -1.
        similarities: Similarity of each neighbour, from -1 to 1, (queries, k).
        labels: Label ids of each training title.
        frequency: Number of training titles with each label.
    """
    if neighbours.shape != similarities.shape or neighbours.ndim != 2:
        raise ValueError(
            f"neighbours and similarities must both be (queries, k), got {neighbours.shape} and "
            f"{similarities.shape}"
        )
    if not (np.abs(similarities[neighbours >= 0]) <= 1 + 1e-3).all():
        raise ValueError("similarities must lie between -1 and 1: are the vectors finite and of unit norm?")
    votes = sum_votes(neighbours, None, labels, len(frequency))
    summed_similarities = sum_votes(neighbours, similarities, labels, len(frequency))
    # An additional vote outweighs any sum of similarities; exact in float64 up to k = 40,000.
    vote_score = float(4 * neighbours.shape[1] * 10**DECIMALS)
    scores = votes * vote_score + np.rint(summed_similarities * 10**DECIMALS)
    neighbour_counts = (neighbours >= 0).sum(axis=1, keepdims=True)
    return predict_from_scores(scores, (votes > 0) & (2 * votes >= neighbour_counts), frequency, neighbours)


def sum_votes(
    neighbours: np.ndarray, weights: np.ndarray | None, labels: Ragged, label_count: int
) -> np.ndarray:
    """Sums the weights of the neighbours that have each label, (queries, labels).

    Args:
        neighbours: Neighbours of each query as row numbers of ``labels``, int64 (queries, k), or -1.
        weights: Weight of each neighbour, (queries, k); None: every neighbour has the weight 1.
        labels: Label ids of all titles that may be neighbours.
        label_count: Number of labels.
    """
    rows, columns = np.nonzero(neighbours >= 0)
    vote_labels = labels.take(neighbours[rows, columns])
    cells = np.repeat(rows, vote_labels.lengths) * label_count + vote_labels.values
    if weights is not None:
        weights = np.repeat(weights[rows, columns].astype(np.float64), vote_labels.lengths)
    sums = np.bincount(cells, weights, len(neighbours) * label_count)
    return sums.reshape(len(neighbours), label_count)
