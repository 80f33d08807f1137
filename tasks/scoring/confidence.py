"""Computes the calibrated confidence of predictions: the probability that the predicted label is correct.

Isotonic regression on held-out titles maps the score of a prediction (tasks/predictor/prediction.py) to a
probability. It is evaluated by cross-fitting: held-out titles are divided by franchise into five folds, and
the confidence of each title is computed by a regression on the other folds.

To reach a requested precision, the top label of a title is accepted only if its score reaches a threshold.
The threshold is the lowest score such that the held-out titles with at least this score have the requested
precision with 95 % confidence (precision.py). The precision therefore refers to all accepted labels together.

A language with enough held-out titles has a separate calibration.

References: Zadrozny, Elkan. Transforming classifier scores into accurate multiclass probability estimates.
    KDD 2002. El-Yaniv, Wiener. On the foundations of noise-free selective classification. JMLR 11, 2010
    (coverage).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from storage.arrays import Ragged
from storage.formats.model import Votes
from storage.shapes import Bool, Float, Float32, Int
from tasks.neighbours.similarity import top_neighbours
from tasks.predictor.prediction import NEIGHBOURS
from tasks.scoring.isotonic import fit_success_shares
from tasks.scoring.precision import lowest_threshold
from tasks.scoring.protocols import CorpusTitles, sample_rows

MAX_HELD_OUT = 5_000  # maximum number of held-out titles for calibrations; a larger number is sampled
MIN_HELD_OUT = 50  # minimum number of held-out titles for calibrations
FOLDS = 5  # folds of cross-fitting
MIN_GROUP_TITLES = 200  # minimum number of held-out titles for a separate calibration of a language
PRECISION_TARGETS = (0.8, 0.9)  # requested precisions for which coverage is measured
BINS = 10  # number of bins of equal size for the calibration error and the reliability plot


class TooFewHeldOut(ValueError):
    """Error: there are too few held-out titles to fit a calibration."""


def held_out_votes(
    titles: CorpusTitles,
    vectors: Float32[np.ndarray, "titles dim"],
    support: Callable[[np.ndarray], np.ndarray],
) -> Votes:
    """Finds the nearest training titles of held-out titles, or of a sample if there are many held-out titles.

    Args:
        titles: All titles of the corpus.
        vectors: Vectors of the titles, with unit norm or zero.
        support: Function that returns the support of each label for titles, from their row numbers.
    """
    queries = sample_rows(titles.held_out, MAX_HELD_OUT)
    ids, cosines = top_neighbours(vectors[queries], vectors[titles.training], NEIGHBOURS)
    return Votes(queries, np.append(titles.training, -1)[ids], cosines, support(queries))


@dataclass(frozen=True)
class Calibration:
    """Increasing, piecewise linear function that maps the score of a title's top label to its confidence."""

    fit_scores: Float[np.ndarray, " titles"]  # scores of the held-out titles to which the function is fitted
    correct: Bool[np.ndarray, " titles"]  # whether the top labels of these titles are correct
    scores: Float[np.ndarray, " knots"]  # scores of the knots of the function, ascending
    probabilities: Float[np.ndarray, " knots"]  # confidence at each knot

    @staticmethod
    def fit(scores: Float[np.ndarray, " titles"], correct: Bool[np.ndarray, " titles"]) -> "Calibration":
        """Fits an isotonic regression to the scores of titles and whether their top labels are correct."""
        knots, shares, _ = fit_success_shares(scores, correct)
        return Calibration(fit_scores=scores, correct=correct, scores=knots, probabilities=shares)

    def confidence(self, scores: Float[np.ndarray, " titles"]) -> Float[np.ndarray, " titles"]:
        """Computes the probability that the top label of each title is correct; 0 for a score of 0."""
        return np.where(scores > 0, np.interp(scores, self.scores, self.probabilities), 0.0)

    def score_threshold(self, minimum_precision: float) -> float:
        """Computes the threshold of the score at which the minimum precision is reached (precision.py).

        It is the smallest positive float if all held-out titles together have this precision, and infinity if
        no threshold reaches it.
        """
        threshold = lowest_threshold(self.fit_scores, self.correct, minimum_precision)
        lowest_score = self.fit_scores[self.fit_scores > 0].min(initial=np.inf)
        return float(np.finfo(np.float64).tiny) if threshold == lowest_score < np.inf else threshold


@dataclass(frozen=True)
class Calibrations:
    """Calibrations of groups of titles (languages), and a calibration for titles of all other groups."""

    overall: Calibration  # fitted to all titles; used for groups without a separate calibration
    by_group: Mapping[str, Calibration]  # calibrations by language

    @staticmethod
    def fit(
        scores: Float[np.ndarray, " titles"],
        correct: Bool[np.ndarray, " titles"],
        groups: np.ndarray,
    ) -> "Calibrations":
        """Fits calibrations to the predictions for held-out titles.

        Args:
            scores: Score of the top label of each title.
            correct: Whether the top label of each title is correct.
            groups: Group (language) of each title.

        Raises:
            TooFewHeldOut: There are fewer than MIN_HELD_OUT titles.
        """
        _check_count(len(scores))
        return Calibrations._fit(scores, correct, _pool_small_groups(groups))

    @staticmethod
    def _fit(scores: np.ndarray, correct: np.ndarray, groups: np.ndarray) -> "Calibrations":
        """Fits calibrations to any number of titles. The group "" gets no separate calibration."""
        rows_by_group = {str(name): groups == name for name in np.unique(groups) if name}
        by_group = {
            name: Calibration.fit(scores[rows], correct[rows]) for name, rows in rows_by_group.items()
        }
        return Calibrations(Calibration.fit(scores, correct), by_group)

    def confidence(
        self, scores: Float[np.ndarray, " titles"], groups: np.ndarray
    ) -> Float[np.ndarray, " titles"]:
        """Computes the probability that the top label of each title is correct."""
        confidence = self.overall.confidence(scores)
        for name, calibration in self.by_group.items():
            confidence[groups == name] = calibration.confidence(scores[groups == name])
        return confidence

    def select(
        self,
        scores: Float[np.ndarray, " titles"],
        groups: np.ndarray,
        minimum_precision: float,
    ) -> Bool[np.ndarray, " titles"]:
        """Marks the titles whose top label is accepted, so that each group reaches the minimum precision."""
        is_selected = scores >= self.overall.score_threshold(minimum_precision)
        for name, calibration in self.by_group.items():
            is_in_group = groups == name
            is_selected[is_in_group] = scores[is_in_group] >= calibration.score_threshold(minimum_precision)
        return is_selected


def _pool_small_groups(groups: np.ndarray) -> np.ndarray:
    """Replaces the names of groups that have fewer than MIN_GROUP_TITLES titles by "".

    ``groups`` is the name of the group of each title.
    """
    names, group_ids, title_counts = np.unique(groups, return_inverse=True, return_counts=True)
    return np.where(title_counts >= MIN_GROUP_TITLES, names, "")[group_ids]


def _check_count(held_out: int) -> None:
    """Raises TooFewHeldOut if there are fewer than MIN_HELD_OUT held-out titles."""
    if held_out < MIN_HELD_OUT:
        raise TooFewHeldOut(
            f"{held_out} held-out titles have a category, but {MIN_HELD_OUT} are needed to calibrate the "
            "confidence of predictions; read more feeds or days"
        )


@dataclass(frozen=True)
class HeldOutPredictions:
    """Predictions for held-out titles. Arrays have one entry per title."""

    scores: Float[np.ndarray, " titles"]  # score of the top label
    correct: Bool[np.ndarray, " titles"]  # whether the top label is correct
    families: Int[np.ndarray, " titles"]  # number of the franchise; all titles of a franchise are in one fold
    groups: np.ndarray  # language

    def cross_fitted(self) -> Float[np.ndarray, " titles"]:
        """Computes the confidence of each title with calibrations that are fitted to the other folds.

        Raises:
            TooFewHeldOut: There are fewer than MIN_HELD_OUT titles.
        """
        confidence = np.zeros(len(self.scores))
        for rows, calibrations in self._folds:
            confidence[rows] = calibrations.confidence(self.scores[rows], self.groups[rows])
        return confidence

    def cross_selected(self, minimum_precision: float) -> Bool[np.ndarray, " titles"]:
        """Marks the titles whose top label is accepted, by thresholds that are computed from the other folds.

        Raises:
            TooFewHeldOut: There are fewer than MIN_HELD_OUT titles.
        """
        is_selected = np.zeros(len(self.scores), dtype=bool)
        for rows, calibrations in self._folds:
            is_selected[rows] = calibrations.select(self.scores[rows], self.groups[rows], minimum_precision)
        return is_selected

    @cached_property
    def _folds(self) -> list[tuple[np.ndarray, Calibrations]]:
        """Folds as (mask of the titles of the fold, calibrations that are fitted to the other titles)."""
        _check_count(len(self.scores))
        fold = np.unique(self.families, return_inverse=True)[1] % FOLDS
        groups = _pool_small_groups(self.groups)
        return [
            (rows, Calibrations._fit(self.scores[~rows], self.correct[~rows], groups[~rows]))
            for rows in (fold == number for number in range(FOLDS))
        ]


def reliability(
    confidence: Float[np.ndarray, " titles"], correct: Bool[np.ndarray, " titles"]
) -> list[tuple[float, float, int]]:
    """Divides titles by confidence into BINS bins.

    Returns:
        (mean confidence, accuracy, number of titles) of each bin that has titles, by ascending confidence.
    """
    bins = np.array_split(np.argsort(confidence, kind="stable"), BINS)
    return [
        (float(confidence[rows].mean()), float(correct[rows].mean()), len(rows)) for rows in bins if len(rows)
    ]


def measure_confidence(
    held_out: HeldOutPredictions, precisions: tuple[float, ...] = PRECISION_TARGETS
) -> dict[str, object]:
    """Evaluates cross-fitted confidences of held-out titles, for the section "confidence" of scores.json.

    Returns:
        ``n``, the number of titles; ``brier_score``, the mean of (confidence − correct)²;
        ``expected_calibration_error``, the mean absolute difference of confidence and accuracy over bins;
        and for each requested precision, under a key such as ``asked_0.9``: the measured ``precision`` (None
        if no label is accepted) and the ``coverage`` (share of titles whose top label is accepted).

    Raises:
        TooFewHeldOut: There are fewer than MIN_HELD_OUT titles.
    """
    confidence, correct = held_out.cross_fitted(), held_out.correct
    bins = reliability(confidence, correct)
    bin_errors = (abs(mean_confidence - accuracy) * count for mean_confidence, accuracy, count in bins)
    figures: dict[str, object] = {
        "n": len(correct),
        "brier_score": float(((confidence - correct) ** 2).mean()),
        "expected_calibration_error": sum(bin_errors) / max(1, len(correct)),
    }
    for precision in precisions:
        is_accepted = held_out.cross_selected(precision)
        figures[f"asked_{precision:g}"] = {
            "precision": float(correct[is_accepted].mean()) if is_accepted.any() else None,
            "coverage": float(is_accepted.mean()),
        }
    return figures


def contains_label(labels: Ragged, top_labels: Int[np.ndarray, " queries"]) -> Bool[np.ndarray, " queries"]:
    """Returns whether the top label of each query is among the query's labels (a row of ``labels``)."""
    rows = labels.row_ids
    return np.bincount(rows, labels.values == top_labels[rows], minlength=len(labels)) > 0
