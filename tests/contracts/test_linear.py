"""Contract of every linear classifier."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from storage.arrays import Ragged
from tasks.linear.logistic import SparseLogistic
from tasks.linear.svm import OnlineSvm

FEATURES, LABELS, SAMPLES = 30, 3, 60


def svm_objective(x: np.ndarray, y: np.ndarray, weights: np.ndarray, intercept: float) -> float:
    """Returns the SVM objective of one label, with y of −1 and 1 and the cost of ``CLASSIFIERS``; float64."""
    losses = np.maximum(0, 1 - y * (x @ weights + intercept)) ** 2
    return 0.5 * (weights @ weights + (intercept + 1) ** 2) + 0.2 * losses.sum()


def logistic_objective(x: np.ndarray, y: np.ndarray, weights: np.ndarray, intercept: float) -> float:
    """Returns the logistic objective of one label with the α of ``CLASSIFIERS``."""
    return np.logaddexp(0, -y * (x @ weights + intercept)).mean() + 0.01 * np.abs(weights).sum()


# A classifier of so many features and labels that finds its optimum in one call, and what it minimises.
CLASSIFIERS = [
    pytest.param(lambda *counts: OnlineSvm(*counts, epochs=200), svm_objective, id="OnlineSvm"),
    pytest.param(
        lambda *counts: SparseLogistic(*counts, alpha=0.01, epochs=1000),
        logistic_objective,
        id="SparseLogistic",
    ),
]
every = pytest.mark.parametrize(("make", "objective"), CLASSIFIERS)
Make, Objective = Callable[..., Any], Callable[..., float]


def world(seed: int = 0, samples: int = SAMPLES) -> tuple[csr_matrix, Ragged]:
    """Sparse samples, one of them empty, whose labels depend on their features; a sample may hold none."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(samples, FEATURES)) * (rng.random((samples, FEATURES)) < 0.3)
    x[samples // 2] = 0
    held = (
        x @ np.random.default_rng(1).normal(size=(FEATURES, LABELS)) + rng.normal(size=(samples, LABELS)) > 1
    )
    return csr_matrix(x.astype(np.float32)), Ragged.from_rows([np.flatnonzero(own) for own in held])


def same(one: Any, other: Any) -> bool:
    return (one.weights == other.weights).all() and (one.intercepts == other.intercepts).all()


@every
def test_it_finds_the_optimum_of_a_small_problem(make: Make, objective: Objective) -> None:
    rows, labels = world()
    fitted, x = make(FEATURES, LABELS).partial_fit(rows, labels), rows.toarray().astype(np.float64)
    for label, y in enumerate(np.where(labels.multi_hot(LABELS), 1.0, -1.0).T):
        best = minimize(lambda w, y=y: objective(x, y, w[:-1], w[-1]), np.zeros(FEATURES + 1), tol=1e-9).fun
        found = objective(x, y, fitted.weights[:, label].astype(np.float64), float(fitted.intercepts[label]))
        assert best <= found * (1 + 1e-6) and found <= best * (1 + 1e-3)


@every
def test_the_margin_is_a_sum_of_the_weights_of_the_features_present(make: Make, objective: Objective) -> None:
    rows, labels = world()
    fitted = make(FEATURES, LABELS).partial_fit(rows, labels)
    margins = fitted.decision_function(rows)
    assert margins.dtype == np.float32 and margins.shape == (SAMPLES, LABELS)
    assert fitted.weights.dtype == np.float32 and fitted.weights.shape == (FEATURES, LABELS)
    np.testing.assert_allclose(margins, rows @ fitted.weights + fitted.intercepts, atol=1e-5)
    np.testing.assert_array_equal(margins[SAMPLES // 2], fitted.intercepts)  # holds no feature


@every
def test_one_seed_gives_the_same_bits(make: Make, objective: Objective) -> None:
    assert same(*(make(FEATURES, LABELS).partial_fit(*world()) for _ in range(2)))


@every
def test_a_label_is_trained_independently_of_others(make: Make, objective: Objective) -> None:
    rows, labels = world()
    alone = Ragged.from_rows([[0] if 1 in own else [] for own in labels])
    one = make(FEATURES, 1).partial_fit(rows, alone).decision_function(rows)[:, 0]
    several = make(FEATURES, LABELS).partial_fit(rows, labels).decision_function(rows)[:, 1]
    np.testing.assert_allclose(one, several, atol=1e-3)


@every
@pytest.mark.parametrize("parts", [1, 4])
def test_a_saved_model_continues_training_with_the_same_results(
    make: Make, objective: Objective, parts: int, tmp_path: Path
) -> None:
    never, stopped = make(FEATURES, LABELS), make(FEATURES, LABELS)
    for part in range(parts):
        samples = world(part)
        never.partial_fit(*samples)
        stopped.partial_fit(*samples).save(tmp_path / "model")
        stopped = type(stopped).load(tmp_path / "model")
    assert same(never, stopped)
    rows, _ = world(9)
    np.testing.assert_array_equal(never.decision_function(rows), stopped.decision_function(rows))
    assert same(never.partial_fit(*world(9)), stopped.partial_fit(*world(9)))
    assert not list(tmp_path.rglob("*.pkl"))


@every
def test_no_samples_change_nothing_empty(make: Make, objective: Objective) -> None:
    fitted = make(FEATURES, LABELS).partial_fit(*world())
    weights, nothing = fitted.weights.copy(), csr_matrix((0, FEATURES), dtype=np.float32)
    assert (fitted.partial_fit(nothing, Ragged.from_rows([])).weights == weights).all()
    assert fitted.decision_function(nothing).shape == (0, LABELS)


@every
def test_one_sample_single(make: Make, objective: Objective) -> None:
    rows, held = csr_matrix(np.eye(1, FEATURES, dtype=np.float32)), Ragged.from_rows([[2]])
    margins = make(FEATURES, LABELS).partial_fit(rows, held).decision_function(rows)[0]
    assert margins.argmax() == 2 and np.isfinite(margins).all()


@every
def test_invalid_input_is_an_error_and_does_not_change_the_model(make: Make, objective: Objective) -> None:
    rows, labels = world()
    fitted = make(FEATURES, LABELS).partial_fit(rows, labels)
    weights, broken = fitted.weights.copy(), rows.copy()
    broken.data[3] = np.nan
    wide = csr_matrix((rows.data, rows.indices, rows.indptr), shape=(SAMPLES, FEATURES + 1))
    wide.indices[-1] = FEATURES
    other = Ragged(labels.offsets, np.where(labels.values == 1, LABELS, labels.values))
    for samples, held, problem in (
        (broken, labels, r"row \d+ holds nan for feature \d+"),
        (
            wide,
            labels,
            rf"row {SAMPLES - 1} holds feature {FEATURES}; there are features 0 to {FEATURES - 1}",
        ),
        (world()[0], other, rf"row \d+ holds label {LABELS}; there are labels 0 to {LABELS - 1}"),
        (world()[0], labels.between(0, 5), "5 rows of labels for 60 samples"),
    ):
        with pytest.raises(ValueError, match=problem):
            fitted.partial_fit(samples, held)
        assert (fitted.weights == weights).all()
    for samples in (broken, wide):
        with pytest.raises(ValueError, match=r"row \d+ holds"):
            fitted.decision_function(samples)
