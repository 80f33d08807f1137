"""The online SVM: PA-II with one pass, LinearSVC with many, new features and drift."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

from storage.arrays import Ragged
from tasks.linear.lookup import Lookup
from tasks.linear.solvers import fit_from_disk
from tasks.linear.svm import OnlineSvm


def world(samples: int, features: int = 40, labels: int = 20, seed: int = 0) -> tuple[csr_matrix, Ragged]:
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(samples, features)) * (rng.random((samples, features)) < 0.2)).astype(np.float32)
    held = x @ np.random.default_rng(9).normal(size=(features, labels)) > 1
    return csr_matrix(x), Ragged.from_rows([np.flatnonzero(own) for own in held])


def test_one_pass_is_the_passive_aggressive_step() -> None:
    rows, labels = world(50)
    learnt = OnlineSvm(40, 20, cost=0.7, epochs=1)
    x, y = rows.toarray().astype(np.float64), np.where(labels.multi_hot(20), 1.0, -1.0)
    weights, intercepts = np.zeros((40, 20)), np.full(20, -1.0)
    for row in range(50):  # one sample a call: in the order in which they come
        learnt.partial_fit(rows[row], labels.between(row, row + 1))
        loss = np.maximum(0, 1 - y[row] * (x[row] @ weights + intercepts))
        step = y[row] * loss / (x[row] @ x[row] + 1 + 1 / (2 * 0.7))
        weights, intercepts = weights + np.outer(x[row], step), intercepts + step
    np.testing.assert_allclose(learnt.weights, weights, atol=1e-5)
    np.testing.assert_allclose(learnt.intercepts, intercepts, atol=1e-5)


def test_many_passes_reach_the_optimum_of_liblinear() -> None:
    rows, labels = world(2_000, labels=4)
    learnt = OnlineSvm(40, 4, epochs=100).partial_fit(rows, labels).decision_function(rows)
    reference = LinearSVC(C=0.2, tol=1e-4, max_iter=10_000, dual=True)
    expected = [reference.fit(rows, own).decision_function(rows) for own in labels.multi_hot(4).T]
    np.testing.assert_allclose(learnt, np.transpose(expected), 0.02, 0.03)  # its intercept is drawn to 0


def test_a_pass_moves_only_the_features_present() -> None:
    learnt = OnlineSvm(40, 20, epochs=2).partial_fit(*world(30, seed=1))
    before, own = learnt.weights.copy(), csr_matrix(np.eye(1, 40, 7, dtype=np.float32))
    learnt.partial_fit(own, Ragged.from_rows([[4]]))
    changed = (learnt.weights != before).any(axis=1)
    assert np.flatnonzero(changed).tolist() == [7]


@pytest.mark.parametrize("labels", [1, 3, 15, 16, 33])
def test_padding_columns_are_not_trained(labels: int) -> None:
    rows, held = world(60, labels=labels)
    learnt = OnlineSvm(40, labels).partial_fit(rows, held)
    assert learnt.weights.shape == (40, labels) and learnt.weights.any(axis=0).all()
    assert not learnt._weights[:, labels:].any() and (learnt._intercepts[labels:] == -1).all()


def test_a_grown_model_equals_one_of_the_final_size(tmp_path: Path) -> None:
    samples = [
        ({"a": 1.0, "b": 0.5}, ["film"]),
        ({"b": 1.0}, ["news"]),
        ({"c": 2.0, "a": 0.5}, ["news", "quiz"]),
        *(({f"word{number}": 1.0, "b": 0.1}, [f"label{number % 20}"]) for number in range(60)),
    ]
    features, labels = Lookup(), Lookup()
    growing = OnlineSvm(features, labels)
    for sample, held in samples:
        rows = features.fit_transform([sample])
        growing.partial_fit(rows, Ragged.from_rows([labels.rows_of(held)]))
    known = OnlineSvm(Lookup(features), Lookup(labels))
    for sample, held in samples:
        known.partial_fit(features.transform([sample]), Ragged.from_rows([labels.rows_of(held)]))
    assert len(features) == 63 and growing.weights.shape == (63, 23)
    np.testing.assert_array_equal(growing.weights, known.weights)
    np.testing.assert_array_equal(growing.intercepts, known.intercepts)
    assert len(growing._weights) < 2 * 63  # rows double

    growing.save(tmp_path / "svm")
    loaded = OnlineSvm.load(tmp_path / "svm")
    assert isinstance(loaded.features, Lookup) and isinstance(loaded.labels, Lookup)
    assert list(loaded.features) == list(features) and list(loaded.labels) == list(labels)
    new = loaded.features.fit_transform([{"never": 1.0, "b": 1.0}])
    held = Ragged.from_rows([loaded.labels.rows_of(["sport"])])
    assert loaded.partial_fit(new, held).decision_function(new).argmax() == 23


def progressive_errors(learnt: OnlineSvm, preferences: np.ndarray, samples: int, seed: int) -> np.ndarray:
    """Returns whether each sample was predicted wrongly before it was learnt; 5 % of the labels are noise."""
    rng = np.random.default_rng(seed)
    wrong = np.empty(samples, dtype=bool)
    for place in range(samples):
        sample = csr_matrix((np.ones(10, np.float32), rng.choice(200, 10, replace=False), [0, 10]), (1, 200))
        likes = ((sample @ preferences)[0] > 0) ^ (rng.random() < 0.05)
        wrong[place] = (learnt.decision_function(sample)[0, 0] > 0) != likes
        learnt.partial_fit(sample, Ragged.from_rows([[0] if likes else []]))
    return wrong


@pytest.mark.slow
def test_the_model_follows_weights_that_change_their_signs() -> None:
    preferences = np.random.default_rng(3).normal(size=200)
    learnt = OnlineSvm(200)
    level = progressive_errors(learnt, preferences, 2_000, seed=4)[-500:].mean()
    after = progressive_errors(learnt, -preferences, 1_750, seed=5)
    assert level < 0.25
    assert after[:50].mean() > 0.6  # what it had learnt is wrong now
    assert after[1_250:].mean() < level + 0.03  # back within 1,250 samples


@pytest.mark.parametrize("wrong", [{"cost": 0}, {"cost": np.nan}, {"epochs": 0}])
def test_wrong_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="cost must be more than 0 and epochs at least 1"):
        OnlineSvm(3, **wrong)  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
def test_trained_from_disk_the_objective_is_that_of_many_passes_in_memory() -> None:
    rows, labels = world(400, seed=2)
    in_memory = OnlineSvm(40, 20, cost=0.2, epochs=500).partial_fit(rows, labels)
    from_disk = fit_from_disk(rows, labels, 20, cost=0.2, memory_bytes=4096)
    signs = np.where(labels.multi_hot(20), 1, -1)

    def objective(model: OnlineSvm) -> np.ndarray:
        losses = np.maximum(0, 1 - signs * model.decision_function(rows)) ** 2
        intercepts = (model.intercepts + 1) ** 2
        return (np.square(model.weights).sum(axis=0) + intercepts) / 2 + 0.2 * losses.sum(axis=0)

    np.testing.assert_allclose(objective(from_disk), objective(in_memory), rtol=2e-3, atol=1e-6)
    unused = labels.multi_hot(20).sum(axis=0) == 0
    assert not from_disk.weights[:, unused].any() and (from_disk.intercepts[unused] == -1).all()
