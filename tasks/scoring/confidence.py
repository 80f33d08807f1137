"""Computes the calibrated confidence of a k-NN vote: the probability that the predicted label is correct.

    score = 1/k Σ cos(title, neighbour), summed over those of the k neighbours that have the label

The score is the share of neighbours that have the label, times their mean similarity. Isotonic regression on
held-out titles maps the score to a probability, the confidence. It is evaluated on held-out titles of other
franchises (cross-fitting with five folds).

To reach a requested precision, a label is predicted for a title if its score is at least a threshold. The
threshold is chosen on held-out titles as low as possible, so that the mean confidence of the titles above it
is the requested precision. The precision therefore refers to all predicted labels together. With a requested
precision of .9, this rule reached .91 and predicted labels for 55 % of the titles; requiring a confidence of
.9 for each title reached .97 and 35 %.

A language with enough held-out titles has a separate calibration. With a requested precision of .8, the
actual precision then differed by .045 (root mean square over 13 guides), instead of .077 with one calibration
for all languages.

References: Zadrozny, Elkan. Transforming classifier scores into accurate multiclass probability estimates.
    KDD 2002. El-Yaniv, Wiener. On the foundations of noise-free selective classification. JMLR 11, 2010
    (coverage).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from storage.arrays import Ragged
from storage.shapes import Bool, Float, Float32, Int
from tasks.baselines.predictions import vote
from tasks.neighbours.similarity import top_neighbours
from tasks.scoring.isotonic import fit_shares
from tasks.scoring.protocols import PROTOCOLS, CorpusTitles

NEIGHBOURS = 10  # voting neighbours
MAX_HELD_OUT = 5_000  # held-out titles used to fit a calibration
MIN_HELD_OUT = 50  # held-out titles needed to estimate the precision
FOLDS = 5  # folds of cross-fitting
MIN_GROUP_TITLES = 200  # held-out titles for a separate calibration of a language
PRECISION_TARGETS = (0.8, 0.9)  # requested precisions at which coverage is measured
BINS = 10  # bins of equal size for the calibration error and the reliability plot
_CHUNK = 4096  # titles per batch, because the scores of all labels are in memory


class TooFewHeldOut(ValueError):
    """Error: there are too few held-out titles to fit a calibration."""


@dataclass(frozen=True)
class HeldOutVotes:
    """Labelled held-out titles with their nearest labelled training titles, nearest first."""

    titles: Int[np.ndarray, " queries"]  # rows of the held-out titles in the corpus
    neighbours: Int[np.ndarray, "queries k"]  # rows of the training titles; -1 if there are fewer than k
    cosines: Float32[np.ndarray, "queries k"]  # cosine similarities of ``neighbours``


def held_out_votes(
    titles: CorpusTitles, vectors: Float32[np.ndarray, "titles dim"], seed: int = 0
) -> HeldOutVotes:
    """Finds the nearest training titles of a random sample of at most MAX_HELD_OUT held-out titles.

    Args:
        titles: All titles of the corpus.
        vectors: Vectors of the titles, with unit norm or zero.
        seed: Seed of the sample.
    """
    queries = np.sort(np.concatenate([titles.labelled(protocol) for protocol in PROTOCOLS]))
    if len(queries) > MAX_HELD_OUT:
        queries = np.sort(np.random.default_rng(seed).choice(queries, MAX_HELD_OUT, replace=False))
    training = titles.labelled("train")
    ids, cosines = top_neighbours(vectors[queries], np.ascontiguousarray(vectors[training]), NEIGHBOURS)
    if not len(training):
        return HeldOutVotes(queries, ids, cosines)
    return HeldOutVotes(queries, np.where(ids >= 0, training[ids], -1), cosines)


def score_votes(
    neighbours: Int[np.ndarray, "queries k"],
    cosines: Float32[np.ndarray, "queries k"],
    labels: Ragged,
    label_count: int,
) -> tuple[Int[np.ndarray, " queries"], Float[np.ndarray, " queries"]]:
    """Predicts a label for each query by the vote of its neighbours.

    Args:
        neighbours: Neighbours of each query as rows of ``labels``; -1 stands for no neighbour.
        cosines: Cosine similarities of ``neighbours``.
        labels: Label ids of all titles; a neighbour without labels does not vote.
        label_count: Number of label ids.

    Returns:
        The label with the highest score, and its score from 0 to 1, or -1 and 0 without votes.
    """
    top_labels, scores = np.full(len(neighbours), -1), np.zeros(len(neighbours))
    frequency = np.bincount(labels.values, minlength=label_count)
    for start in range(0, len(neighbours) if label_count else 0, _CHUNK):
        chunk = slice(start, start + _CHUNK)
        top = vote(neighbours[chunk], cosines[chunk], labels, frequency).top
        rows, columns = np.nonzero(neighbours[chunk] >= 0)
        neighbour_labels = labels.take(neighbours[chunk][rows, columns])
        neighbour_ids = neighbour_labels.row_ids
        is_agreement = neighbour_labels.values == top[rows[neighbour_ids]]
        weights = np.maximum(cosines[chunk][rows, columns].astype(np.float64)[neighbour_ids[is_agreement]], 0)
        vote_sums = np.bincount(rows[neighbour_ids[is_agreement]], weights, minlength=len(top))
        scores[chunk] = vote_sums / neighbours.shape[1]
        top_labels[chunk] = np.where(vote_sums > 0, top, -1)
    return top_labels, scores


@dataclass(frozen=True)
class Calibration:
    """Increasing, piecewise linear function that maps the score of a title to its confidence."""

    fit_scores: Float[np.ndarray, " titles"]  # scores of the held-out titles on which it was fitted
    scores: Float[np.ndarray, " knots"]  # scores of the knots of the function, ascending
    probabilities: Float[np.ndarray, " knots"]  # confidence at each knot

    @staticmethod
    def fit(scores: Float[np.ndarray, " titles"], correct: Bool[np.ndarray, " titles"]) -> "Calibration":
        """Fits an isotonic regression of ``correct`` (whether the top label is correct) on the scores."""
        return Calibration(scores, *fit_shares(scores, correct)[:2])

    def confidence(self, scores: Float[np.ndarray, " titles"]) -> Float[np.ndarray, " titles"]:
        """Returns the probability that the top label of each title is correct; 0 for score 0 (no label)."""
        return np.where(scores > 0, np.interp(scores, self.scores, self.probabilities), 0.0)

    def score_threshold(self, minimum_precision: float) -> float:
        """Returns the lowest score from which on held-out titles have the requested precision on average.

        If all titles together have this precision, returns the smallest positive float; if none, infinity.
        """
        chosen = choose(self.confidence(self.fit_scores), self.fit_scores, minimum_precision)
        if chosen.sum() == np.count_nonzero(self.fit_scores) > 0:
            return float(np.finfo(np.float64).tiny)
        return float(self.fit_scores[chosen].min(initial=np.inf))


@dataclass(frozen=True)
class Calibrations:
    """Calibrations of groups of titles (languages), and a calibration for titles of all other groups."""

    overall: Calibration  # fitted on all titles, used for groups without a separate calibration
    by_group: Mapping[str, Calibration]  # calibrations by language

    @staticmethod
    def fit(
        scores: Float[np.ndarray, " titles"],
        correct: Bool[np.ndarray, " titles"],
        groups: np.ndarray,
    ) -> "Calibrations":
        """Fits calibrations by the scores, correctness and group (language) of the labels of held-out titles.

        Raises:
            TooFewHeldOut: There are fewer than MIN_HELD_OUT titles.
        """
        _check_count(len(scores))
        return Calibrations._fit(scores, correct, _pool_small_groups(groups))

    @staticmethod
    def _fit(scores: np.ndarray, correct: np.ndarray, groups: np.ndarray) -> "Calibrations":
        """Fits calibrations on any number of titles. The group "" gets no separate calibration."""
        rows_by_group = {str(name): groups == name for name in np.unique(groups) if name}
        fitted = {name: Calibration.fit(scores[rows], correct[rows]) for name, rows in rows_by_group.items()}
        return Calibrations(Calibration.fit(scores, correct), fitted)

    def confidence(
        self, scores: Float[np.ndarray, " titles"], groups: np.ndarray
    ) -> Float[np.ndarray, " titles"]:
        """Returns the probability that the top label of each title is correct."""
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
        """Marks the titles whose label is predicted, so that each group reaches the minimum precision."""
        selected = scores >= self.overall.score_threshold(minimum_precision)
        for name, calibration in self.by_group.items():
            rows = groups == name
            selected[rows] = scores[rows] >= calibration.score_threshold(minimum_precision)
        return selected


def _pool_small_groups(groups: np.ndarray) -> np.ndarray:
    """Replaces groups that have fewer than MIN_GROUP_TITLES titles by ''."""
    names, group_ids, count = np.unique(groups, return_inverse=True, return_counts=True)
    return np.where(count >= MIN_GROUP_TITLES, names, "")[group_ids]


def _check_count(held_out: int) -> None:
    """Raises TooFewHeldOut if there are fewer than MIN_HELD_OUT held-out titles."""
    if held_out < MIN_HELD_OUT:
        problem = f"{held_out} held-out titles have a category, {MIN_HELD_OUT} are needed"
        raise TooFewHeldOut(f"{problem} to calibrate the confidence of predictions; read more feeds or days")


def cross_fitted(
    scores: Float[np.ndarray, " titles"],
    correct: Bool[np.ndarray, " titles"],
    families: Int[np.ndarray, " titles"],
    groups: np.ndarray,
) -> Float[np.ndarray, " titles"]:
    """Computes the confidence of each title with calibrations that were fitted on the other folds.

    Args:
        scores: Score of the top label of each title.
        correct: Whether the top label of each title is correct.
        families: Number of each title's franchise; a franchise is in one of FOLDS folds.
        groups: Language of each title.

    Raises:
        TooFewHeldOut: There are fewer than MIN_HELD_OUT titles.
    """
    _check_count(len(scores))
    fold, groups = np.unique(families, return_inverse=True)[1] % FOLDS, _pool_small_groups(groups)
    confidence = np.zeros(len(scores))
    for number in range(FOLDS):
        rows = fold == number
        fitted = Calibrations._fit(scores[~rows], correct[~rows], groups[~rows])
        confidence[rows] = fitted.confidence(scores[rows], groups[rows])
    return confidence


def choose(
    confidence: Float[np.ndarray, " titles"], scores: Float[np.ndarray, " titles"], minimum_precision: float
) -> Bool[np.ndarray, " titles"]:
    """Marks as many of the most confident titles as have the requested precision on average.

    Titles with equal confidence are ordered by score. Titles with score 0 are not marked.
    """
    order = np.lexsort((-scores, -confidence))
    mean = np.cumsum(confidence[order]) / np.arange(1, len(order) + 1)
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[: np.max(np.flatnonzero(mean >= minimum_precision), initial=-1) + 1]] = True
    return chosen & (scores > 0)


def choose_by_group(
    confidence: Float[np.ndarray, " titles"],
    scores: Float[np.ndarray, " titles"],
    groups: np.ndarray,
    minimum_precision: float,
) -> Bool[np.ndarray, " titles"]:
    """Applies ``choose`` to each group of at least MIN_GROUP_TITLES titles, and once to all other titles."""
    groups, chosen = _pool_small_groups(groups), np.zeros(len(scores), dtype=bool)
    for name in np.unique(groups):
        rows = groups == name
        chosen[rows] = choose(confidence[rows], scores[rows], minimum_precision)
    return chosen


def reliability(
    confidence: Float[np.ndarray, " titles"], correct: Bool[np.ndarray, " titles"]
) -> list[tuple[float, float, int]]:
    """Divides titles by confidence into BINS bins. Returns mean confidence, accuracy and size of each."""
    bins = np.array_split(np.argsort(confidence, kind="stable"), BINS)
    nonempty = (rows for rows in bins if len(rows))
    return [(float(confidence[rows].mean()), float(correct[rows].mean()), len(rows)) for rows in nonempty]


def measure_confidence(
    confidence: Float[np.ndarray, " titles"],
    scores: Float[np.ndarray, " titles"],
    correct: Bool[np.ndarray, " titles"],
    groups: np.ndarray,
    precisions: tuple[float, ...] = PRECISION_TARGETS,
) -> dict[str, object]:
    """Evaluates cross-fitted confidences of held-out titles, for the section "confidence" of scores.json.

    Returns:
        ``n``, the number of titles; ``brier_score``, the mean of (confidence − correct)²;
        ``expected_calibration_error``, the mean absolute difference of confidence and precision over bins;
        and for each requested precision, with keys such as ``asked_0.9``: the reached ``precision`` (None if
        no title is assigned a label) and the ``coverage`` (share of titles that are assigned a label).
    """
    bins = reliability(confidence, correct)
    errors = (abs(mean_confidence - accuracy) * count for mean_confidence, accuracy, count in bins)
    calibration_error = sum(errors) / max(1, len(correct))
    brier = float(((confidence - correct) ** 2).mean())
    figures: dict[str, object] = {"n": len(correct), "brier_score": brier}
    figures["expected_calibration_error"] = calibration_error
    for precision in precisions:
        chosen = choose_by_group(confidence, scores, groups, precision)
        reached = float(correct[chosen].mean()) if chosen.any() else None
        figures[f"asked_{precision:g}"] = {"precision": reached, "coverage": float(chosen.mean())}
    return figures


def contains_label(labels: Ragged, top_labels: Int[np.ndarray, " queries"]) -> Bool[np.ndarray, " queries"]:
    """Returns whether row i of ``labels`` contains ``top_labels[i]``, for each i."""
    rows = labels.row_ids
    return np.bincount(rows, labels.values == top_labels[rows], minlength=len(labels)) > 0
