"""Both solvers against plain float64 loops over every weight, autograd and scikit-learn's optimum."""

import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from storage.arrays import Ragged
from tasks.linear.ftrl import Ftrl
from tasks.linear.logistic import BLOCK, Solver, SparseLogistic, visiting_order
from tasks.linear.logistic_steps import INTERCEPT_RATE
from tasks.linear.proximal import ProximalSgd
from tasks.linear.threads import _merge_copies, run_shared

FEATURES, ALPHA = 40, 1e-3
SOLVERS = [pytest.param(solver, id=solver.name) for solver in (Ftrl(), ProximalSgd(halved=1000))]
every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_width = pytest.mark.parametrize("labels", [1, 3])


def world(samples: int, labels: int = 1, seed: int = 0) -> tuple[csr_matrix, Ragged]:
    """Makes rows of 0 to 8 features, some rare, and labels that depend on a few features."""
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(1, FEATURES + 1)
    picked = [
        rng.choice(FEATURES, count, False, chance / chance.sum()) for count in rng.integers(0, 9, samples)
    ]
    ids = Ragged.from_rows(picked)
    values = rng.normal(0.5, 0.5, len(ids.values)).astype(np.float32)
    rows = csr_matrix((values, ids.values, ids.offsets), shape=(samples, FEATURES))
    truth = (
        np.random.default_rng(1).normal(0, 3, (FEATURES, labels)) * (np.arange(FEATURES) % 3 == 0)[:, None]
    )
    held = rng.random((samples, labels)) < 1 / (1 + np.exp(0.5 - rows @ truth))
    return rows, Ragged.from_rows([np.flatnonzero(own) for own in held])


def objective(
    rows: csr_matrix, held: np.ndarray, weights: np.ndarray, intercept: float, alpha: float
) -> float:
    sign = np.where(held, 1, -1)
    losses = np.logaddexp(0, -sign * (rows.astype(np.float64) @ weights.astype(np.float64) + intercept))
    return float(losses.mean() + alpha * np.abs(weights.astype(np.float64)).sum())


def soft(values: np.ndarray, threshold: float) -> np.ndarray:
    return np.sign(values) * np.maximum(np.abs(values) - threshold, 0)


def eager(solver: Solver, rows: csr_matrix, labels: Ragged, width: int, calls: int) -> tuple[np.ndarray, ...]:
    """Trains with an update of every weight at every step; returns weights and intercepts, float64."""
    x, held, count = (
        rows.toarray().astype(np.float64),
        labels.multi_hot(width).astype(np.float64),
        rows.shape[0],
    )
    weights, intercepts = np.zeros((FEATURES, width)), np.zeros(width)
    sums, squares = np.zeros((FEATURES + 1, width)), np.zeros((FEATURES + 1, width))
    for call in range(calls):
        order = visiting_order(count, np.random.default_rng((0, call * count)))
        for visit, row in enumerate(order):
            seen = call * count + visit
            error = 1 / (1 + np.exp(-(x[row] @ weights + intercepts))) - held[row]
            gradient = np.outer(np.append(x[row], 1), error)
            if isinstance(solver, ProximalSgd):
                block = call * count + visit // BLOCK * BLOCK
                rate = solver.learning_rate / (1 + block / solver.halved)
                weights = soft(weights - rate * gradient[:-1], rate * ALPHA)
                intercepts = intercepts - rate * INTERCEPT_RATE * gradient[-1]
                continue
            rates = solver.learning_rate * np.append(np.ones(FEATURES), INTERCEPT_RATE)[:, None]
            sigma = (np.sqrt(squares + gradient**2) - np.sqrt(squares)) / rates
            sums += gradient - sigma * np.vstack([weights, intercepts])
            squares += gradient**2
            penalty = np.append(np.full(FEATURES, ALPHA * (seen + 1)), 0)[:, None]
            leaders = -soft(sums, penalty) * rates / (solver.beta + np.sqrt(squares))
            weights, intercepts = leaders[:-1], leaders[-1]
    return weights, intercepts


@every_solver
@every_width
def test_lazy_updates_equal_eager_updates(solver: Solver, labels: int) -> None:
    """With samples of more than one block and a second call; rare features wait for most of the steps."""
    rows, held = world(BLOCK + 200, labels)
    ours = SparseLogistic(FEATURES, labels, alpha=ALPHA, solver=solver)
    for _ in range(2):
        ours.partial_fit(rows, held)
    weights, intercepts = eager(solver, rows, held, labels, 2)
    assert (weights == 0).any() and np.abs(weights).max() > 0.5
    np.testing.assert_allclose(ours.weights, weights, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours.intercepts, intercepts, rtol=1e-6, atol=1e-6)


@every_width
def test_a_step_follows_the_negative_gradient_of_the_log_loss(labels: int) -> None:
    """The steps of a batch's samples, each from the same weights, add up to autograd's gradient."""
    rows, held = world(30, labels)
    start = SparseLogistic(FEATURES, labels, alpha=0, solver=ProximalSgd(halved=1e15)).partial_fit(rows, held)
    moved, moved_intercepts = np.zeros((FEATURES, labels)), np.zeros(labels)
    for row in range(30):
        model = SparseLogistic(FEATURES, labels, alpha=0, solver=start.solver)
        model._records[:], model._state[:] = start._records, start._state
        model.partial_fit(rows[row], held.take(np.array([row])))
        moved += model.weights - start.weights
        moved_intercepts += model.intercepts - start.intercepts
    weights = torch.tensor(start.weights, dtype=torch.float64, requires_grad=True)
    intercepts = torch.tensor(start.intercepts, dtype=torch.float64, requires_grad=True)
    margins = torch.from_numpy(rows.toarray().astype(np.float64)) @ weights + intercepts
    targets = torch.from_numpy(held.multi_hot(labels).astype(np.float64))
    torch.nn.functional.binary_cross_entropy_with_logits(margins, targets, reduction="sum").backward()
    assert weights.grad is not None and intercepts.grad is not None
    np.testing.assert_allclose(moved, -weights.grad.numpy(), atol=1e-5)
    np.testing.assert_allclose(moved_intercepts, -INTERCEPT_RATE * intercepts.grad.numpy(), atol=1e-5)


def test_ftrl_adds_the_gradient_and_takes_the_sum_of_squares_before_it() -> None:
    """z ← z + g − σ w of a sample, g by autograd."""
    rows, held = world(300)
    solver = Ftrl(learning_rate=0.5)
    start = SparseLogistic(FEATURES, alpha=ALPHA, solver=solver).partial_fit(rows, held)
    row = int(np.argmax(np.diff(rows.indptr)))
    weights = torch.tensor(start.weights[:, 0], dtype=torch.float64, requires_grad=True)
    margin = torch.from_numpy(rows[row].toarray()[0].astype(np.float64)) @ weights + float(
        start.intercepts[0]
    )
    target = torch.tensor(float(len(held[row])), dtype=torch.float64)
    torch.nn.functional.binary_cross_entropy_with_logits(margin, target).backward()
    assert weights.grad is not None
    gradient, (sums, roots) = weights.grad.numpy(), start._records.T.astype(np.float64)
    after = start.partial_fit(rows[row], held.take(np.array([row])))._records.T
    sigma = (np.sqrt(roots**2 + gradient**2) - roots) / solver.learning_rate
    np.testing.assert_allclose(after[0], sums + gradient - sigma * weights.detach().numpy(), atol=1e-6)
    np.testing.assert_allclose(after[1], np.sqrt(roots**2 + gradient**2), atol=1e-6)


def test_the_optimum_of_scikit_learn_and_its_zeros() -> None:
    rows, held = world(4000)
    target = held.lengths > 0
    reference = LogisticRegression(
        solver="saga", l1_ratio=1, C=1 / (ALPHA * 4000), tol=1e-7, max_iter=5000, random_state=0
    ).fit(rows.astype(np.float64), target)
    best = objective(rows, target, reference.coef_[0], reference.intercept_[0], ALPHA)
    ours = SparseLogistic(FEATURES, alpha=ALPHA, epochs=40).partial_fit(rows, held)
    reached = objective(rows, target, ours.weights[:, 0], float(ours.intercepts[0]), ALPHA)
    assert best <= reached * (1 + 1e-6) and reached <= best * (1 + 1e-3)
    zeros = (ours.weights[:, 0] == 0, reference.coef_[0] == 0)
    assert zeros[1].sum() >= 5 and (zeros[0] == zeros[1]).sum() >= FEATURES - 4


@every_solver
def test_labels_are_trained_independently(solver: Solver) -> None:
    rows, held = world(500, 3)
    together = SparseLogistic(FEATURES, 3, alpha=ALPHA, solver=solver).partial_fit(rows, held)
    for label in range(3):
        own = Ragged.from_rows([[0] if label in row else [] for row in held])
        alone = SparseLogistic(FEATURES, alpha=ALPHA, solver=solver).partial_fit(rows, own)
        np.testing.assert_allclose(together.weights[:, label], alone.weights[:, 0], atol=1e-5)
        np.testing.assert_allclose(together.intercepts[label], alone.intercepts[0], atol=1e-5)


@every_solver
@every_width
def test_a_saved_model_continues_training_with_the_same_results(
    solver: Solver, labels: int, tmp_path: Path
) -> None:
    parts = [world(1500, labels, seed) for seed in range(3)]
    never = SparseLogistic(FEATURES, labels, alpha=ALPHA, solver=solver, seed=3)
    stopped = SparseLogistic(FEATURES, labels, alpha=ALPHA, solver=solver, seed=3)
    for part in parts:
        never.partial_fit(*part)
        stopped.partial_fit(*part).save(tmp_path / "model")
        stopped = SparseLogistic.load(tmp_path / "model")
    assert stopped.solver == solver and stopped.seen == 4500
    np.testing.assert_array_equal(never.weights, stopped.weights)
    np.testing.assert_array_equal(
        never.decision_function(parts[0][0]), stopped.decision_function(parts[0][0])
    )


@every_solver
def test_the_seed_decides_the_order(solver: Solver) -> None:
    one, same, other = (
        SparseLogistic(FEATURES, alpha=ALPHA, solver=solver, seed=seed).partial_fit(*world(500)).weights
        for seed in (0, 0, 1)
    )
    assert (one == same).all() and (one != other).any()


def mean_objective(rows: csr_matrix, labels: np.ndarray, model: SparseLogistic) -> float:
    values = zip(labels.T, model.weights.T, model.intercepts, strict=True)
    return float(np.mean([objective(rows, held, own, float(bias), ALPHA) for held, own, bias in values]))


@every_solver
@every_width
def test_threads_share_the_weights(solver: Solver, labels: int) -> None:
    """How much of a step is lost depends on how the threads are scheduled; that both see all samples does
    not, nor that they learn."""
    rows, held = world(20 * BLOCK, labels)
    members = held.multi_hot(labels)
    models = [
        SparseLogistic(FEATURES, labels, alpha=ALPHA, solver=solver, epochs=3, threads=threads)
        for threads in (1, 4)
    ]
    untrained = mean_objective(rows, members, models[0])
    one, four = (untrained - mean_objective(rows, members, model.partial_fit(rows, held)) for model in models)
    assert models[0].seen == models[1].seen == 3 * 20 * BLOCK
    assert four > 0.1 * one > 0  # 0.32 was seen on two busy cores


def test_threads_take_every_turn_once() -> None:
    turns: list[tuple[int, int]] = []
    together = threading.Barrier(4, timeout=60)  # passed when all four are at work

    def step(turn: int) -> None:
        if turn < 4:
            together.wait()
        turns.append((turn, threading.get_ident()))

    run_shared(4, 100, step)
    assert sorted(turn for turn, _ in turns) == list(range(100))
    assert len({thread for turn, thread in turns if turn < 4}) == 4


@pytest.mark.parametrize("count", [1, 31, 32, 33, BLOCK + 5])
def test_every_sample_is_visited_once(count: int) -> None:
    order = visiting_order(count, np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(count))


@every_solver
def test_no_samples_and_samples_without_features_empty(solver: Solver) -> None:
    model = SparseLogistic(FEATURES, solver=solver)
    model.partial_fit(csr_matrix((0, FEATURES)), Ragged.from_rows([]))
    assert model.seen == 0 and model.decision_function(csr_matrix((0, FEATURES))).shape == (0, 1)
    model.partial_fit(csr_matrix((3, FEATURES)), Ragged.from_rows([[0], [0], [0]]))
    assert not model.weights.any() and model.intercepts[0] > 0
    assert model.decision_function(csr_matrix((2, FEATURES))).tolist() == [[model.intercepts[0]]] * 2


@pytest.mark.parametrize("wrong", [{"alpha": -1}, {"alpha": np.nan}, {"epochs": 0}, {"labels": 0}])
def test_a_setting_out_of_range_is_named(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SparseLogistic(FEATURES, **wrong)  # pyright: ignore[reportArgumentType]


def test_a_folder_of_another_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="contains no L1 logistic regression"):
        SparseLogistic.load(tmp_path)


def test_two_copies_of_short_records_come_to_the_optimum_of_one() -> None:
    """Small values, so that rounds are long enough for two threads; the bits tell that both worked."""
    rows, held = world(20 * BLOCK)
    rows.data *= 0.05
    one, two = (
        SparseLogistic(FEATURES, alpha=1e-6, epochs=3, threads=threads).partial_fit(rows, held)
        for threads in (1, 2)
    )
    target = held.lengths > 0
    alone, merged = (
        objective(rows, target, own.weights[:, 0], float(own.intercepts[0]), 1e-6) for own in (one, two)
    )
    assert one.seen == two.seen and (one.weights != two.weights).any()
    assert merged == pytest.approx(alone, rel=2e-3)


def test_unused_features_do_not_prevent_merged_rounds() -> None:
    rows, labels = world(20 * BLOCK)
    rows.data *= 0.05
    models = [
        SparseLogistic(features, alpha=1e-6, epochs=3, threads=2).partial_fit(
            csr_matrix((rows.data, rows.indices, rows.indptr), (20 * BLOCK, features)), labels
        )
        for features in (FEATURES, 100)
    ]
    np.testing.assert_array_equal(models[1].weights[:FEATURES], models[0].weights)


def test_samples_without_features_are_trained_by_several_threads() -> None:
    labels = Ragged.from_rows([[0]] * 2000)
    model = SparseLogistic(FEATURES, threads=2).partial_fit(csr_matrix((2000, FEATURES)), labels)
    assert model.intercepts[0] > 0 and not model.weights.any()


def test_sums_and_squares_of_copies_add_up_and_reach_all_copies() -> None:
    shared = np.array([[[1], [3]], [[2], [4]], [[5], [0]]], dtype=np.float32)  # (rows, sum and root, labels)
    copies = np.stack([shared] * 2)
    copies[0, 0, :, 0], copies[1, 0, :, 0] = (1.5, 5), (0.5, 4)  # squares 25 and 16, of 9
    copies[1, 2, :, 0] = 7, 2
    _merge_copies(shared, copies, 0, 3)
    np.testing.assert_allclose(shared[:, 0, 0], [1, 2, 7])
    np.testing.assert_allclose(shared[:, 1, 0], [np.sqrt(9 + 16 + 7), 4, 2])
    np.testing.assert_array_equal(copies, np.stack([shared] * 2))
