"""Averages the results for held-out titles over several folds of a guide.

A fold is a split of the titles of a guide into training and held-out titles. A title is held out if the hash
of a salt and the title is below a limit, and each fold has its own salt.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tasks.scoring.bootstrap import count_groups, draw_groups, number_groups, resample_mean
from tasks.scoring.metrics import Judged
from tasks.scoring.protocols import PROTOCOLS, CorpusTitles, score_knn

SALTS = tuple(f"guidespace-{number}" for number in range(1, 6))  # salts of the five folds
K, RESAMPLES = 10, 1000  # numbers of neighbours that vote and of bootstrap resamples


class TitleScores(NamedTuple):
    """Correctness of predictions for held-out titles of one fold. Arrays have one entry per title."""

    correct: np.ndarray  # float64, 1 if the top label is correct, else 0
    precision_at_k: np.ndarray | None  # share of neighbours with a correct label; None without neighbours
    family: np.ndarray  # hash of the first content word, which groups titles of a franchise
    oov: np.ndarray  # bool, whether the title has a word that no training title contains

    @property
    def quality(self) -> np.ndarray:
        """Quality of each title in the gate: the mean of ``correct`` and ``precision_at_k`` (if any)."""
        return self.correct if self.precision_at_k is None else (self.correct + self.precision_at_k) / 2


# Scores of titles by (form of the input, held-out set). A held-out set without labelled titles has no entry.
ScoresByCell = dict[tuple[str, str], TitleScores]


class Figure(NamedTuple):
    """A mean over ``n`` titles or guides, and its standard error."""

    value: float
    error: float
    n: int

    @property
    def margin(self) -> float:
        """Half the width of the 95 % interval."""
        return 1.96 * self.error

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the 95 % interval."""
        return self.value - self.margin, self.value + self.margin

    @property
    def sign(self) -> bool | None:
        """True if the interval is above zero, False if it is below zero, None if it contains zero."""
        low, high = self.interval
        return True if low > 0 else False if high < 0 else None


def predict_held_out(
    titles: CorpusTitles, family: np.ndarray, form: str, vectors: np.ndarray, k: int = K
) -> ScoresByCell:
    """Predicts the categories of all held-out titles by k-NN, and compares them with the true categories.

    Args:
        titles: All titles of the corpus.
        family: Hash of the first content word of each title.
        form: Form of the input (title_only or title_context), which is part of the keys of the result.
        vectors: Vectors of the titles, float32 (titles, dim), with unit norm or zero.
        k: Number of neighbours that vote.
    """
    predictions: ScoresByCell = {}
    for protocol in PROTOCOLS:
        queries = titles.labelled(protocol)
        if len(queries):
            judgement = score_knn(titles, vectors, queries, k)
            predictions[form, protocol] = combine_predictions(judgement, family[queries], titles.oov[queries])
    return predictions


def combine_predictions(judged: Judged, family: np.ndarray, oov: np.ndarray) -> TitleScores:
    """Combines the results for the titles of a held-out set with the family and ``oov`` of each title."""
    return TitleScores(judged.correct.astype(np.float64), judged.precision_at_k, family, oov)


def mean_scores(predictions: Sequence[TitleScores], resamples: int = RESAMPLES) -> dict[str, Figure]:
    """Computes the mean accuracy and, for k-NN, ``precision_at_10`` over the held-out titles of all folds."""
    family = np.concatenate([fold.family for fold in predictions])
    columns = {"accuracy": [fold.correct for fold in predictions]}
    precisions = [fold.precision_at_k for fold in predictions]
    columns["precision_at_10"] = [precision for precision in precisions if precision is not None]
    values = {name: np.concatenate(column) for name, column in columns.items() if column}
    return mean_columns(values, family, resamples)


def mean_columns(
    columns: dict[str, np.ndarray], family: np.ndarray, resamples: int = RESAMPLES
) -> dict[str, Figure]:
    """Computes the mean of each column, and the standard error of the mean by the bootstrap.

    All columns are averaged over the same resamples. A resample contains families with their titles of all
    folds.

    Args:
        columns: Arrays by name, with one value per held-out title and fold.
        family: Family (franchise) of each value.
        resamples: Number of bootstrap resamples.
    """
    if not len(family):
        return dict.fromkeys(columns, Figure(0.0, 0.0, 0))
    groups = number_groups(family)
    counts = draw_groups(count_groups(groups), resamples, np.random.default_rng(1))
    return {
        name: Figure(float(values.mean()), float(resample_mean(values, groups, counts).std()), len(values))
        for name, values in columns.items()
    }
