"""Confidences and thresholds, calibrated on held-out titles."""

import numpy as np
import pytest
from scipy.special import betaincinv
from sklearn.isotonic import IsotonicRegression

from storage.arrays import Ragged
from storage.formats.model import Votes
from tasks.predictor.prediction import predict_top
from tasks.scoring.confidence import (
    MIN_HELD_OUT,
    Calibration,
    Calibrations,
    HeldOutPredictions,
    TooFewHeldOut,
    contains_label,
    held_out_votes,
    measure_confidence,
    reliability,
)
from tasks.scoring.precision import lowest_threshold, reaches_precision
from tasks.scoring.protocols import CorpusTitles

RNG = np.random.default_rng(7)
ONE = np.full(20_000, "en")


def drawn(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws scores, and predictions that are correct with the probability score²."""
    scores = RNG.uniform(0, 1, count)
    return scores, RNG.uniform(0, 1, count) < scores**2


def test_the_score_is_the_share_of_votes_times_their_mean_similarity() -> None:
    labels = Ragged.from_rows([[0], [0, 1], [1], []])
    neighbours = np.array([[0, 1, 2, 3], [3, -1, -1, -1], [1, -1, -1, -1]])
    cosines = np.array([[0.9, 0.5, 0.4, 0.3], [0.8, 0, 0, 0], [0.6, 0, 0, 0]], dtype=np.float32)
    first, scores = predict_top(neighbours, cosines, labels, 2)
    # two vote for 0 (.9 + .5) and two for 1 (.5 + .4): the similarity decides, over k = 4
    assert first.tolist()[:2] == [0, -1] and first[2] in (0, 1)
    np.testing.assert_allclose(scores, [1.4 / 4, 0, 0.6 / 4], atol=1e-6)
    none, nothing = predict_top(neighbours, cosines, Ragged.from_rows([[], [], [], []]), 0)
    assert none.tolist() == [-1] * 3 and not nothing.any()


def test_confidence_is_the_probability() -> None:
    calibration = Calibration.fit(*drawn(20_000))
    scores, correct = drawn(20_000)
    confidence = calibration.confidence(scores)
    np.testing.assert_allclose(confidence, scores**2, atol=0.1)
    for sure, right, count in reliability(confidence, correct):
        assert abs(sure - right) < 5 * np.sqrt(0.25 / count)
    assert calibration.confidence(np.zeros(1)) == 0  # no neighbour holds a label


def test_the_regression_is_that_of_scikit_learn() -> None:
    scores, correct = drawn(3000)
    scores = scores.round(2)  # with ties
    asked = RNG.uniform(0.001, 1, 500)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, correct).predict(asked)
    np.testing.assert_allclose(Calibration.fit(scores, correct).confidence(asked), theirs, atol=1e-12)


def test_cross_fitting_sees_no_title_of_the_group() -> None:
    """Other answers in a group change the confidence of other groups alone."""
    scores, correct = drawn(500)
    groups = np.arange(500) // 5
    other = np.where(groups == 7, ~correct, correct)
    before, after = (
        HeldOutPredictions(scores, answers, groups, ONE[:500]).cross_fitted() for answers in (correct, other)
    )
    np.testing.assert_array_equal(before[groups == 7], after[groups == 7])
    assert (before != after).any()
    with pytest.raises(TooFewHeldOut, match="50 are needed"):
        Calibrations.fit(*drawn(MIN_HELD_OUT - 1), ONE[: MIN_HELD_OUT - 1])


@pytest.mark.parametrize(
    "asked", [pytest.param(0.8, marks=pytest.mark.slow), 0.9, pytest.param(0.95, marks=pytest.mark.slow)]
)
def test_titles_of_other_folds_reach_the_precision(asked: float) -> None:
    scores, correct = drawn(20_000)
    held_out = HeldOutPredictions(scores, correct, np.arange(20_000), ONE)
    chosen = held_out.cross_selected(asked)
    assert asked - 0.01 < correct[chosen].mean() < asked + 0.03
    figures = measure_confidence(held_out, (asked,))
    assert figures[f"asked_{asked:g}"] == {"precision": correct[chosen].mean(), "coverage": chosen.mean()}
    assert 0 < figures["brier_score"] < 0.25 and figures["expected_calibration_error"] < 0.02  # type: ignore[operator]


@pytest.mark.parametrize(("precision", "risk"), [(0.9, 0.05), (0.5, 0.25), (0.99, 0.05)])
def test_the_bound_is_that_of_clopper_and_pearson(precision: float, risk: float) -> None:
    correct = RNG.uniform(0, 1, 2000) < np.linspace(1.05, 0.4, 2000)
    count, positive = np.arange(1, 2001), np.cumsum(correct)
    bounds = np.where(
        positive, betaincinv(np.maximum(positive, 1), count - np.maximum(positive, 1) + 1, risk), 0
    )
    np.testing.assert_array_equal(reaches_precision(correct, precision, risk), bounds >= precision)


def test_thresholds_of_few_equal_or_certain_scores() -> None:
    scores, sure = np.linspace(0.99, 0.5, 100), np.arange(100) < 80
    assert lowest_threshold(scores, sure, 0.9) > lowest_threshold(scores, sure, 0.8)
    assert lowest_threshold(scores[:20], sure[:20], 0.9) == np.inf  # 20 of 20 may be a precision of .86
    assert lowest_threshold(np.full(100, 0.7), sure, 0.9) == np.inf  # equal scores are not divided
    assert lowest_threshold(np.full(100, 0.7), sure, 0.7) == 0.7
    assert lowest_threshold(np.zeros(100), sure, 0.1) == np.inf  # no label
    assert lowest_threshold(np.zeros(0), sure[:0], 0.5) == lowest_threshold(scores, sure, 1) == np.inf
    assert lowest_threshold(scores, sure, 0) == 0.5


def test_the_precision_is_reached_in_nineteen_of_twenty_guides() -> None:
    """The mean of score² from the threshold t on is (1 + t + t²) / 3, which is .8 for t = .7845."""
    thresholds = [Calibration.fit(*drawn(300)).score_threshold(0.8) for _ in range(200)]
    assert np.mean(np.array(thresholds) < 0.7845) < 0.1


@pytest.mark.parametrize("asked", [0.8, 0.9])
def test_the_score_threshold_of_held_out_titles_reaches_the_precision_on_others(asked: float) -> None:
    calibration = Calibration.fit(*drawn(20_000))
    scores, correct = drawn(20_000)
    assert asked - 0.01 < correct[scores >= calibration.score_threshold(asked)].mean() < asked + 0.03
    assert 0 < Calibration.fit(scores, correct | True).score_threshold(asked) < scores.min()
    scores, never = drawn(100)
    assert Calibration.fit(scores, never & False).score_threshold(asked) == np.inf


def test_a_language_with_enough_titles_has_a_separate_calibration() -> None:
    """The same scores are right more often in one language; a third has few titles."""
    scores = RNG.uniform(0, 1, 3000)
    groups = np.repeat(["aa", "bb", "cc"], [1450, 1450, 100])
    correct = RNG.uniform(0, 1, 3000) < np.where(groups == "aa", scores, scores**3)
    fitted = Calibrations.fit(scores, correct, groups)
    assert set(fitted.by_group) == {"aa", "bb"}
    same = np.full(4, 0.7)
    sure = fitted.confidence(same, np.array(["aa", "bb", "cc", "unknown"]))
    assert sure[0] > sure[2] == sure[3] > sure[1]
    np.testing.assert_allclose(sure[:2], [0.7, 0.343], atol=0.1)
    chosen = fitted.select(scores, groups, 0.8)
    for name in ("aa", "bb"):
        assert 0.8 <= correct[chosen & (groups == name)].mean() < 0.88
    crossed = HeldOutPredictions(scores, correct, np.arange(3000), groups).cross_fitted()
    np.testing.assert_allclose(crossed[groups == "bb"], scores[groups == "bb"] ** 3, atol=0.2)


def test_neighbours_of_held_out_titles_are_labelled_training_titles() -> None:
    vectors = np.eye(8, dtype=np.float32)[[0, 0, 1, 1, 2, 2, 2]]
    titles = CorpusTitles(
        split=np.array(["train", "unseen_title", "train", "unseen_show", "train", "next_period", "train"]),
        labels=Ragged.from_rows([[0], [0], [1], [0], [], [], []]),
        label_count=2,
        family=np.arange(7),
        oov=np.zeros(7, dtype=bool),
        rare=np.arange(7) >= 5,  # a held-out title counts, a training title has no vote
    )
    votes = held_out_votes(titles, vectors, lambda rows: np.eye(2)[rows % 2])
    assert isinstance(votes, Votes) and votes.titles.tolist() == [1, 3, 5]
    assert votes.neighbours[:, 0].tolist() == [0, 2, 0] and votes.cosines[:, 0].tolist() == [1, 1, 0]
    assert set(votes.neighbours.ravel()) == {-1, 0, 2}
    first, _ = predict_top(votes.neighbours, votes.cosines, titles.labels, 2)
    assert contains_label(titles.labels.take(votes.titles), first).tolist() == [True, False, False]
