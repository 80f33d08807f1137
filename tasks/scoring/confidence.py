"""How sure the vote of the nearest titles is: the probability that the label it puts first is right.

    score = 1/k Σ cos(title, neighbour), over the neighbours that hold the label

is the share of votes times their mean similarity. Isotonic regression on held-out titles turns it into a
probability, which is measured on other held-out titles (cross-fitting: five folds by franchise).

Labels are assigned to the surest titles, as many as keep the mean confidence of the chosen at the precision
asked for: the precision is that of all that is assigned. (A bound on each title's own confidence reached .97
where .9 was asked and filled .35 of the titles; this one .91 and .55. docs/log) The score from which on
titles are chosen is that of held-out titles, so that what a title gets does not depend on others in its file.
A language with enough held-out titles has a calibration of its own: where .8 was asked of 13 guides, their
precisions missed it by .045 with one each and by .077 with one for all (root mean square).

References:
    Zadrozny, Elkan. Transforming classifier scores into accurate multiclass probability estimates. KDD 2002.
    El-Yaniv, Wiener. On the foundations of noise-free selective classification. JMLR 11, 2010 (coverage).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from storage.arrays import Ragged
from storage.shapes import Bool, Float, Float32, Int
from tasks.baselines.predictions import vote
from tasks.neighbours.similarity import top_neighbours
from tasks.scoring.protocols import PROTOCOLS, Titles

K = 10  # neighbours that vote
MOST = 5_000  # held-out titles that a calibration is fitted on
FEWEST = 50  # with fewer, the precision of what is assigned is unknown
FOLDS = 5
ENOUGH = 200  # held-out titles of a language that has a calibration of its own
ASKED = (0.8, 0.9)  # precisions at which the coverage is measured
BINS = 10  # of the calibration error and the reliability plot, with equally many titles
_CHUNK = 4096  # titles whose scores are in memory at a time, one a label


class TooFewHeldOut(ValueError):
    """Too few held-out titles to calibrate on."""


@dataclass(frozen=True)
class HeldOutVotes:
    """Labelled held-out titles, and the labelled training titles nearest to each, best first."""

    titles: Int[np.ndarray, " queries"]
    neighbours: Int[np.ndarray, "queries k"]  # titles; -1 where absent
    cosines: Float32[np.ndarray, "queries k"]


def held_out_votes(titles: Titles, vectors: Float32[np.ndarray, "titles dim"], seed: int = 0) -> HeldOutVotes:
    """Of all held-out sets together, at most MOST titles, drawn at random.

    ``vectors`` have unit norm or are zero.
    """
    queries = np.sort(np.concatenate([titles.labelled(protocol) for protocol in PROTOCOLS]))
    if len(queries) > MOST:
        queries = np.sort(np.random.default_rng(seed).choice(queries, MOST, replace=False))
    training = titles.labelled("train")
    ids, cosines = top_neighbours(vectors[queries], np.ascontiguousarray(vectors[training]), K)
    if not len(training):
        return HeldOutVotes(queries, ids, cosines)
    return HeldOutVotes(queries, np.where(ids >= 0, training[ids], -1), cosines)


def score_votes(
    neighbours: Int[np.ndarray, "queries k"],
    cosines: Float32[np.ndarray, "queries k"],
    labels: Ragged,
    label_count: int,
) -> tuple[Int[np.ndarray, " queries"], Float[np.ndarray, " queries"]]:
    """The label that the vote puts first, and its score, 0 to 1; -1 and 0 where no neighbour holds a label.

    ``neighbours`` are rows of ``labels``, -1 where absent; a neighbour without labels votes for none.
    """
    first, scores = np.full(len(neighbours), -1), np.zeros(len(neighbours))
    frequency = np.bincount(labels.values, minlength=label_count)
    for start in range(0, len(neighbours) if label_count else 0, _CHUNK):
        chunk = slice(start, start + _CHUNK)
        top = vote(neighbours[chunk], cosines[chunk], labels, frequency).top
        rows, places = np.nonzero(neighbours[chunk] >= 0)
        theirs = labels.take(neighbours[chunk][rows, places])
        owners = theirs.owners
        agree = theirs.values == top[rows[owners]]
        weights = np.maximum(cosines[chunk][rows, places].astype(np.float64)[owners[agree]], 0)
        summed = np.bincount(rows[owners[agree]], weights, minlength=len(top))
        scores[chunk] = summed / neighbours.shape[1]
        first[chunk] = np.where(summed > 0, top, -1)
    return first, scores


@dataclass(frozen=True)
class Calibration:
    """Score to confidence: piecewise linear, rising; ``held_out`` are the scores it was fitted on."""

    held_out: Float[np.ndarray, " titles"]
    scores: Float[np.ndarray, " knots"]
    probabilities: Float[np.ndarray, " knots"]

    @staticmethod
    def fit(scores: Float[np.ndarray, " titles"], correct: Bool[np.ndarray, " titles"]) -> "Calibration":
        """Isotonic regression."""
        from scipy.optimize import isotonic_regression  # scikit-learn's takes 100 MB more

        knots, place, count = np.unique(scores, return_inverse=True, return_counts=True)
        shares = np.bincount(place, correct) / count
        return Calibration(scores, knots, isotonic_regression(shares, weights=count).x)

    def confidence(self, scores: Float[np.ndarray, " titles"]) -> Float[np.ndarray, " titles"]:
        """The probability that the first label is right; 0 where there is none (a score of 0)."""
        return np.where(scores > 0, np.interp(scores, self.scores, self.probabilities), 0.0)

    def least_score(self, minimum_precision: float) -> float:
        """The score from which on the precision is reached on held-out titles; infinite where none is, the
        smallest above zero where it is on all.
        """
        chosen = choose(self.confidence(self.held_out), self.held_out, minimum_precision)
        if chosen.sum() == np.count_nonzero(self.held_out) > 0:
            return float(np.finfo(np.float64).tiny)
        return float(self.held_out[chosen].min(initial=np.inf))


@dataclass(frozen=True)
class Calibrations:
    """One of all titles, and one of each group (language) that has ENOUGH held-out titles."""

    of_all: Calibration
    of_group: Mapping[str, Calibration]

    @staticmethod
    def fit(
        scores: Float[np.ndarray, " titles"],
        correct: Bool[np.ndarray, " titles"],
        groups: np.ndarray,
    ) -> "Calibrations":
        """Of held-out titles; TooFewHeldOut with fewer than FEWEST."""
        _require(len(scores))
        return Calibrations._fit(scores, correct, _large(groups))

    @staticmethod
    def _fit(scores: np.ndarray, correct: np.ndarray, groups: np.ndarray) -> "Calibrations":
        own = {str(name): groups == name for name in np.unique(groups) if name}
        fitted = {name: Calibration.fit(scores[rows], correct[rows]) for name, rows in own.items()}
        return Calibrations(Calibration.fit(scores, correct), fitted)

    def confidence(
        self, scores: Float[np.ndarray, " titles"], groups: np.ndarray
    ) -> Float[np.ndarray, " titles"]:
        """The probability that the first label of each title is right."""
        found = self.of_all.confidence(scores)
        for name, calibration in self.of_group.items():
            found[groups == name] = calibration.confidence(scores[groups == name])
        return found

    def reach(
        self,
        scores: Float[np.ndarray, " titles"],
        groups: np.ndarray,
        minimum_precision: float,
    ) -> Bool[np.ndarray, " titles"]:
        """Which titles are assigned their first label, so that the precision is reached in each group."""
        found = scores >= self.of_all.least_score(minimum_precision)
        for name, calibration in self.of_group.items():
            own = groups == name
            found[own] = scores[own] >= calibration.least_score(minimum_precision)
        return found


def _large(groups: np.ndarray) -> np.ndarray:
    """Groups, empty where one has fewer than ENOUGH titles."""
    names, place, count = np.unique(groups, return_inverse=True, return_counts=True)
    return np.where(count >= ENOUGH, names, "")[place]


def _require(held_out: int) -> None:
    if held_out < FEWEST:
        problem = f"{held_out} held-out titles have a category, {FEWEST} are needed"
        raise TooFewHeldOut(f"{problem} to tell how sure a prediction is; read more feeds or days")


def cross_fitted(
    scores: Float[np.ndarray, " titles"],
    correct: Bool[np.ndarray, " titles"],
    families: Int[np.ndarray, " titles"],
    groups: np.ndarray,
) -> Float[np.ndarray, " titles"]:
    """Confidence of each title by calibrations on the other folds; titles of one family share a fold.

    Raises:
        TooFewHeldOut: As ``Calibrations.fit``.
    """
    _require(len(scores))
    fold, groups = np.unique(families, return_inverse=True)[1] % FOLDS, _large(groups)
    confidence = np.zeros(len(scores))
    for number in range(FOLDS):
        own = fold == number
        fitted = Calibrations._fit(scores[~own], correct[~own], groups[~own])
        confidence[own] = fitted.confidence(scores[own], groups[own])
    return confidence


def choose(
    confidence: Float[np.ndarray, " titles"], scores: Float[np.ndarray, " titles"], minimum_precision: float
) -> Bool[np.ndarray, " titles"]:
    """The most titles, surest first, whose mean confidence is at least ``minimum_precision``; of equal
    confidence the greater score goes first.
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
    """``choose`` in each group of ENOUGH titles, and in all others together."""
    groups, chosen = _large(groups), np.zeros(len(scores), dtype=bool)
    for name in np.unique(groups):
        own = groups == name
        chosen[own] = choose(confidence[own], scores[own], minimum_precision)
    return chosen


def reliability(
    confidence: Float[np.ndarray, " titles"], correct: Bool[np.ndarray, " titles"]
) -> list[tuple[float, float, int]]:
    """Mean confidence, share that is right, and number of titles of each bin of rising confidence."""
    bins = np.array_split(np.argsort(confidence, kind="stable"), BINS)
    return [(float(confidence[own].mean()), float(correct[own].mean()), len(own)) for own in bins if len(own)]


def measure_confidence(
    confidence: Float[np.ndarray, " titles"],
    scores: Float[np.ndarray, " titles"],
    correct: Bool[np.ndarray, " titles"],
    groups: np.ndarray,
    asked: tuple[float, ...] = ASKED,
) -> dict[str, object]:
    """Figures of cross-fitted confidences.

    Returns:
        n; brier_score, the mean of (confidence − right)²; expected_calibration_error, the mean distance of
        confidence and precision over bins; and for each precision asked for, ``asked_0.9``: the
        ``precision`` reached (None where nothing is assigned) and the ``coverage``, the share of titles that
        are assigned a label.
    """
    bins = reliability(confidence, correct)
    apart = sum(abs(sure - right) * count for sure, right, count in bins) / max(1, len(correct))
    brier = float(((confidence - correct) ** 2).mean())
    found: dict[str, object] = {"n": len(correct), "brier_score": brier, "expected_calibration_error": apart}
    for precision in asked:
        chosen = choose_by_group(confidence, scores, groups, precision)
        reached = float(correct[chosen].mean()) if chosen.any() else None
        found[f"asked_{precision:g}"] = {"precision": reached, "coverage": float(chosen.mean())}
    return found


def holds(labels: Ragged, first: Int[np.ndarray, " queries"]) -> Bool[np.ndarray, " queries"]:
    """Whether each row of ``labels`` holds the label put first."""
    owners = labels.owners
    return np.bincount(owners, labels.values == first[owners], minlength=len(labels)) > 0
