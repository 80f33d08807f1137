"""Folds, splits of one guide with different salts: results per held-out title, and means over folds."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tasks.scoring.bootstrap import count_groups, draw_groups, number_groups, resample_mean
from tasks.scoring.metrics import Judged
from tasks.scoring.protocols import PROTOCOLS, Titles, judge_knn

SALTS = tuple(f"guidespace-{number}" for number in range(1, 6))
K, RESAMPLES = 10, 1000


class Answer(NamedTuple):
    """Results of a predictor, an entry per held-out title.

    ``precision_at_10`` is None for predictors without neighbours, ``family`` is a hash, and ``oov`` marks
    titles with a word that no training title contains.
    """

    correct: np.ndarray
    precision_at_10: np.ndarray | None
    family: np.ndarray
    oov: np.ndarray

    @property
    def quality(self) -> np.ndarray:
        """Mean of ``correct`` and ``precision_at_10``, the gate's metric; ``correct`` without neighbours."""
        return self.correct if self.precision_at_10 is None else (self.correct + self.precision_at_10) / 2


Answers = dict[tuple[str, str], Answer]  # by (form, protocol); protocols without labelled titles are absent


class Figure(NamedTuple):
    """A mean over titles or guides, its standard error and their number."""

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


def answer_knn(titles: Titles, family: np.ndarray, form: str, vectors: np.ndarray, k: int = K) -> Answers:
    """Evaluates the k-NN on unit vectors, float32 (titles, dim), zero for titles without known tokens."""
    training, answers = titles.labelled("train"), {}
    for protocol in PROTOCOLS:
        queries = titles.labelled(protocol)
        if len(queries):
            judged = judge_knn(titles, vectors, queries, training, k)
            answers[form, protocol] = to_answer(judged, family[queries], titles.oov[queries])
    return answers


def to_answer(judged: Judged, family: np.ndarray, oov: np.ndarray) -> Answer:
    """Converts a judged held-out set."""
    return Answer(judged.correct.astype(np.float64), judged.precision_at_k, family, oov)


def pool(answers: Sequence[Answer], resamples: int = RESAMPLES) -> dict[str, Figure]:
    """Pools the accuracy and, for a k-NN, precision_at_10 of one held-out set over the folds."""
    family = np.concatenate([answer.family for answer in answers])
    columns = {"accuracy": [answer.correct for answer in answers]}
    precisions = [answer.precision_at_10 for answer in answers]
    columns["precision_at_10"] = [precision for precision in precisions if precision is not None]
    values = {name: np.concatenate(column) for name, column in columns.items() if column}
    return pool_values(values, family, resamples)


def pool_values(
    columns: dict[str, np.ndarray], family: np.ndarray, resamples: int = RESAMPLES
) -> dict[str, Figure]:
    """Computes the mean of each column; columns have a value per held-out title and fold.

    Standard errors come from a bootstrap over families with their titles of all folds, shared by all columns.
    """
    if not len(family):
        return dict.fromkeys(columns, Figure(0.0, 0.0, 0))
    groups = number_groups(family)
    counts = draw_groups(count_groups(groups), resamples, np.random.default_rng(1))
    return {
        name: Figure(float(values.mean()), float(resample_mean(values, groups, counts).std()), len(values))
        for name, values in columns.items()
    }
