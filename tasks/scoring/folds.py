"""One guide split several times, by salt: answers to the held-out titles, and figures over all folds."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tasks.scoring.bootstrap import count_groups, draw_groups, number_groups, resample_mean
from tasks.scoring.metrics import Judged
from tasks.scoring.protocols import PROTOCOLS, Titles, judge_knn

SALTS = tuple(f"guidespace-{number}" for number in range(1, 6))
K, RESAMPLES = 10, 1000


class Answer(NamedTuple):
    """One number a held-out title; precision is None where nothing is a neighbour, family a hash, oov whether
    it holds a word that no training title holds.
    """

    correct: np.ndarray
    precision_at_10: np.ndarray | None
    family: np.ndarray
    oov: np.ndarray

    @property
    def quality(self) -> np.ndarray:
        """Mean of both, the measure that the gate goes by; of correct alone where there is no precision."""
        return self.correct if self.precision_at_10 is None else (self.correct + self.precision_at_10) / 2


Answers = dict[tuple[str, str], Answer]  # of (form, protocol); without protocols that hold no labelled title


class Figure(NamedTuple):
    """A mean over titles or guides, its standard error, and how many titles or guides."""

    value: float
    error: float
    n: int

    @property
    def margin(self) -> float:
        """Half of the 95 % interval."""
        return 1.96 * self.error

    @property
    def interval(self) -> tuple[float, float]:
        """Of 95 %."""
        return self.value - self.margin, self.value + self.margin


def answer_knn(titles: Titles, family: np.ndarray, form: str, vectors: np.ndarray, k: int = K) -> Answers:
    """Answers of the k-NN by unit vectors, float32 (titles, dim), zero where nothing is known of a title."""
    training, answers = titles.labelled("train"), {}
    for protocol in PROTOCOLS:
        queries = titles.labelled(protocol)
        if len(queries):
            judged = judge_knn(titles, vectors, queries, training, k)
            answers[form, protocol] = to_answer(judged, family[queries], titles.oov[queries])
    return answers


def to_answer(judged: Judged, family: np.ndarray, oov: np.ndarray) -> Answer:
    """What is kept of a judged held-out set."""
    return Answer(judged.correct.astype(np.float64), judged.precision_at_k, family, oov)


def pool(answers: Sequence[Answer], resamples: int = RESAMPLES) -> dict[str, Figure]:
    """Accuracy and, of a k-NN, precision_at_10 of one held-out set over the folds."""
    family = np.concatenate([own.family for own in answers])
    columns = {"accuracy": [own.correct for own in answers]}
    columns["precision_at_10"] = [own.precision_at_10 for own in answers if own.precision_at_10 is not None]
    values = {name: np.concatenate(column) for name, column in columns.items() if column}
    return pool_values(values, family, resamples)


def pool_values(
    columns: dict[str, np.ndarray], family: np.ndarray, resamples: int = RESAMPLES
) -> dict[str, Figure]:
    """Means of columns, one value a held-out title and fold.

    The bootstrap behind their errors draws families, each with its titles of all folds; the same for all.
    """
    if not len(family):
        return dict.fromkeys(columns, Figure(0.0, 0.0, 0))
    groups = number_groups(family)
    counts = draw_groups(count_groups(groups), resamples, np.random.default_rng(1))
    return {
        name: Figure(float(values.mean()), float(resample_mean(values, groups, counts).std()), len(values))
        for name, values in columns.items()
    }
