"""Predictions of categories in one form, so that all predictors are scored by the same code; the k-NN vote.

A predictor scores every label; labels are ranked by score. Equal scores go to the label that more training
titles hold, and labels equal even in that to a fixed shuffle of the label ids: labels that always stand
together ("movie", "action") tie by construction, and an alphabetical winner costs up to three points.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from storage.arrays import Ragged
from tasks.baselines.inputs import TitleInputs
from tasks.baselines.nearest import nearest_rows
from tasks.neighbours.similarity import top_neighbours

SHUFFLE = 2_654_435_761  # odd, about 2**32 / golden ratio: multiplying by it permutes the 32-bit numbers
DECIMALS = 6  # similarities are float32: sums closer than this are a tie, whatever the order of adding


@dataclass(frozen=True)
class LabelledTitles:
    """Training titles with their label ids (0 to ``label_count``, exclusive), at least one each."""

    titles: TitleInputs
    labels: Ragged
    label_count: int

    def __post_init__(self) -> None:
        values, empty = self.labels.values, np.flatnonzero(self.labels.lengths == 0)
        if len(self.titles) != len(self.labels):
            problem = f"{len(self.titles)} titles for {len(self.labels)} rows of labels"
            raise ValueError(f"{problem}; give one title per row")
        if len(values) and (values.min() < 0 or values.max() >= self.label_count):
            got = f"{values.min()} … {values.max()}"
            raise ValueError(f"label ids must lie in 0 … {self.label_count - 1}, got {got}")
        if len(empty):
            raise ValueError(f"title {empty[0]} holds no label; pass labelled titles only")

    @cached_property
    def frequency(self) -> np.ndarray:
        """Titles that hold each label: int64, shape (labels,)."""
        return np.bincount(self.labels.values, minlength=self.label_count)


@dataclass(frozen=True)
class Predictions:
    """Predictions for some titles."""

    ranks: np.ndarray  # int32 (queries, labels), 1 for the most likely label
    predicted: np.ndarray  # bool (queries, labels), the labels it would assign, one at least
    neighbours: np.ndarray | None = None  # int64 (queries, k), training titles, best first, -1 where absent

    def __len__(self) -> int:
        return len(self.ranks)

    @property
    def top(self) -> np.ndarray:
        """The most likely label of each query."""
        return self.ranks.argmin(axis=1)


def predict_from_scores(
    scores: np.ndarray, written: np.ndarray, frequency: np.ndarray, neighbours: np.ndarray | None = None
) -> Predictions:
    """Turns scores, float64, shape (queries, labels), greater is more likely, into predictions.

    ``written`` (bool) are labels above the predictor's own threshold; where none is, the top label is
    predicted, because every scored title holds one. ``frequency``: training titles that hold each label.
    """
    if scores.ndim != 2 or scores.shape != written.shape or scores.shape[1:] != frequency.shape:
        got = f"{scores.shape}, {written.shape} and {frequency.shape}"
        raise ValueError(f"scores and written must be (queries, labels) and frequency (labels,), got {got}")
    if nan := int(np.isnan(scores).any(axis=1).sum()):
        raise ValueError(f"{nan} of {len(scores)} queries have a score that is not a number")
    ranks = rank_labels(scores, frequency)
    nothing = ~written.any(axis=1, keepdims=True)
    return Predictions(ranks, written | (nothing & (ranks == 1)), neighbours)


def rank_labels(scores: np.ndarray, frequency: np.ndarray) -> np.ndarray:
    """Ranks by score, then by frequency in training, then by a fixed shuffle: int32, 1 is best."""
    shuffled = np.arange(len(frequency), dtype=np.uint64) * SHUFFLE % 2**32
    tie_order = np.lexsort((shuffled, -frequency))  # a stable sort of columns in this order leaves ties in it
    order = tie_order[np.argsort(-scores[:, tie_order], axis=1, kind="stable")]
    ranks = np.empty(scores.shape, dtype=np.int32)
    np.put_along_axis(ranks, order, np.arange(1, len(frequency) + 1, dtype=np.int32)[None, :], axis=1)
    return ranks


def vote(
    neighbours: np.ndarray, similarities: np.ndarray, labels: Ragged, frequency: np.ndarray
) -> Predictions:
    """The vote of the nearest titles, the same for our vectors and for TF-IDF.

    Labels are ranked by votes, then by the summed similarity of those who voted, then by frequency in
    training. (Weighting votes by similarity changed nothing.) Predicted are the labels that at least half of
    the neighbours hold, the best threshold for errors counted label by label; where none, the top one.
    ``neighbours``, int64 (queries, k), are rows of ``labels``, -1 where absent; without any: the majority.
    """
    if neighbours.shape != similarities.shape or neighbours.ndim != 2:
        got = f"{neighbours.shape} and {similarities.shape}"
        raise ValueError(f"neighbours and similarities must both be (queries, k), got {got}")
    (query_count, k), label_count = neighbours.shape, len(frequency)
    rows, places = np.nonzero(neighbours >= 0)
    chosen = labels.take(neighbours[rows, places])
    weights = similarities[rows, places].astype(np.float64)
    if not (np.abs(weights) <= 1 + 1e-3).all():
        raise ValueError("similarities must lie between -1 and 1: are the vectors finite and of unit norm?")
    cells = np.repeat(rows, chosen.lengths) * label_count + chosen.values  # of each (query, label)
    votes, summed = (
        np.bincount(cells, own, query_count * label_count).reshape(query_count, label_count)
        for own in (None, np.repeat(weights, chosen.lengths))
    )
    # One vote more weighs more than any sum of similarities; exact in float64 up to k = 40,000.
    scores = votes * float(4 * k * 10**DECIMALS) + np.rint(summed * 10**DECIMALS)
    present = (neighbours >= 0).sum(axis=1, keepdims=True)
    return predict_from_scores(scores, (votes > 0) & (2 * votes >= present), frequency, neighbours)


def top_by_cosine(queries: Any, base: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of ``base`` of greatest cosine above 0 with each query, ties by rising id; else -1 and 0.

    Both are arrays with rows of norm 1 (or all zero), or CSR matrices, of shape (titles, features); ids int64
    and cosines float32, (queries, k).
    """
    if not isinstance(queries, np.ndarray):
        return nearest_rows(queries, base, k)
    ids, cosines = top_neighbours(queries, base, k)
    return np.where(cosines > 0, ids, -1), np.maximum(cosines, 0)
