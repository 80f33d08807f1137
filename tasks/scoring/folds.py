"""Results per held-out title, and their means over folds. A fold is a split of one guide by another salt."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tasks.scoring.bootstrap import count_groups, draw_groups, number_groups, resample_mean
from tasks.scoring.metrics import Judged
from tasks.scoring.protocols import PROTOCOLS, CorpusTitles, judge_knn

SALTS = tuple(f"guidespace-{number}" for number in range(1, 6))
K, RESAMPLES = 10, 1000


class HeldOutPredictions(NamedTuple):
    """Results of a predictor: arrays with one entry per held-out title."""

    correct: np.ndarray  # whether the top label is correct
    precision_at_10: np.ndarray | None  # None for predictors without neighbours
    family: np.ndarray  # hash of the first content word
    oov: np.ndarray  # whether the title has a word that no training title contains

    @property
    def quality(self) -> np.ndarray:
        """The metric of the gate: the mean of ``correct`` and ``precision_at_10``, if there is one."""
        return self.correct if self.precision_at_10 is None else (self.correct + self.precision_at_10) / 2


# Keys are (form, protocol). A protocol without labelled titles has no entry.
PredictionsByCell = dict[tuple[str, str], HeldOutPredictions]


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


def answer_knn(
    titles: CorpusTitles, family: np.ndarray, form: str, vectors: np.ndarray, k: int = K
) -> PredictionsByCell:
    """Predicts the categories of all held-out titles by k-NN.

    ``vectors`` are float32 (titles, dim) with unit norm, or zero for titles without known tokens.
    """
    training, answers = titles.labelled("train"), {}
    for protocol in PROTOCOLS:
        queries = titles.labelled(protocol)
        if len(queries):
            judged = judge_knn(titles, vectors, queries, training, k)
            answers[form, protocol] = to_answer(judged, family[queries], titles.oov[queries])
    return answers


def to_answer(judged: Judged, family: np.ndarray, oov: np.ndarray) -> HeldOutPredictions:
    """Combines the judged predictions of a held-out set with its families and unseen words."""
    return HeldOutPredictions(judged.correct.astype(np.float64), judged.precision_at_k, family, oov)


def pool(answers: Sequence[HeldOutPredictions], resamples: int = RESAMPLES) -> dict[str, Figure]:
    """Computes the means of accuracy and, for a k-NN, precision_at_10 over the titles of all folds."""
    family = np.concatenate([answer.family for answer in answers])
    columns = {"accuracy": [answer.correct for answer in answers]}
    precisions = [answer.precision_at_10 for answer in answers]
    columns["precision_at_10"] = [precision for precision in precisions if precision is not None]
    values = {name: np.concatenate(column) for name, column in columns.items() if column}
    return pool_values(values, family, resamples)


def pool_values(
    columns: dict[str, np.ndarray], family: np.ndarray, resamples: int = RESAMPLES
) -> dict[str, Figure]:
    """Computes the mean of each column and its standard error.

    Columns have a value per held-out title and fold. All columns use the same bootstrap, which resamples
    families, each with its titles of all folds.
    """
    if not len(family):
        return dict.fromkeys(columns, Figure(0.0, 0.0, 0))
    groups = number_groups(family)
    counts = draw_groups(count_groups(groups), resamples, np.random.default_rng(1))
    return {
        name: Figure(float(values.mean()), float(resample_mean(values, groups, counts).std()), len(values))
        for name, values in columns.items()
    }
