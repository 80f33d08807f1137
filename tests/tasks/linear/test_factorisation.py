"""Matrix factorisation: gradients against autograd, known optima, seeds and threads, resume, bad input."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tasks.linear.factorisation import Factorisation, FactorisationSettings
from tasks.linear.ratings import Ratings


def settings(**changed: float) -> FactorisationSettings:
    return FactorisationSettings(
        **{"dim": 5, "epochs": 3, "learning_rate": 0.02, "weight_decay": 0.05} | changed
    )  # pyright: ignore


def some_ratings(count: int = 2_000, seed: int = 0) -> Ratings:
    rng = np.random.default_rng(seed)
    return Ratings.from_columns(
        rng.integers(0, 80, count), rng.integers(0, 60, count), rng.normal(3, 1, count)
    )


def parameters(model: Factorisation) -> list[np.ndarray]:
    return [model.users.factors, model.users.biases, model.items.factors, model.items.biases]


def same(one: Factorisation, other: Factorisation) -> bool:
    return one.mean == other.mean and all(map(np.array_equal, parameters(one), parameters(other)))


def gradients(model: Factorisation, ratings: Ratings, decay: float) -> list[np.ndarray]:
    """By autograd, in float64: of the sum over ratings of half the squared error and half the decay."""
    leaves = [torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in parameters(model)]
    factors, biases, item_factors, item_biases = leaves
    users, items = torch.tensor(ratings.users), torch.tensor(ratings.items)
    u, v, b, c = factors[users], item_factors[items], biases[users], item_biases[items]
    assert model.mean is not None
    error = (u * v).sum(1) + b + c + model.mean - torch.tensor(ratings.values)
    squares = (u**2).sum(1) + (v**2).sum(1) + b**2 + c**2
    (0.5 * (error**2).sum() + 0.5 * decay * squares.sum()).backward()
    return [leaf.grad.numpy() for leaf in leaves if leaf.grad is not None]


def step_taken(model: Factorisation, ratings: Ratings) -> list[np.ndarray]:
    before = [array.astype(np.float64) for array in parameters(model)]
    model.partial_fit(ratings)
    return [array - old for array, old in zip(parameters(model), before, strict=True)]


@pytest.mark.parametrize("dim", [0, 1, 16, 37])
@pytest.mark.parametrize("pairs", [1, 9])
def test_a_step_is_the_gradient_of_autograd(dim: int, pairs: int):
    """Ratings that share no row: an epoch is one step on all."""
    names, values = np.arange(pairs), np.linspace(-2, 3, pairs)
    ratings = Ratings.from_columns(names, names, values)
    model = Factorisation(settings(dim=dim, learning_rate=0.1)).fit(ratings)  # biases are no longer 0
    wanted = gradients(model, ratings, 0.05)
    for step, gradient in zip(step_taken(model, ratings), wanted, strict=True):
        np.testing.assert_allclose(step, -0.1 * gradient, atol=2e-7)


def test_an_epoch_of_tiny_steps_is_the_gradient_of_the_batch():
    ratings = some_ratings(300)
    model = Factorisation(settings(learning_rate=1e-4)).partial_fit(ratings)
    wanted = gradients(model, ratings, 0.05)
    for step, gradient in zip(step_taken(model, ratings), wanted, strict=True):
        np.testing.assert_allclose(step, -1e-4 * gradient, atol=0.01 * 1e-4 * np.abs(gradient).max())


def test_a_matrix_of_rank_one_is_recovered():
    rng = np.random.default_rng(0)
    left, right = rng.normal(0, 1, 40), rng.normal(0, 1, 30)
    users, items = (axis.ravel() for axis in np.meshgrid(range(40), range(30), indexing="ij"))
    truth, shown = np.outer(left, right).ravel(), rng.random(1_200) < 0.6
    model = Factorisation(settings(dim=1, epochs=500, weight_decay=0))
    model.fit(Ratings.from_columns(users[shown], items[shown], truth[shown]))
    hidden = model.predict(users[~shown], items[~shown])
    np.testing.assert_allclose(hidden, truth[~shown], atol=1e-3)
    assert model.rmse[-1] < 1e-4 < model.rmse[0]


def test_biases_alone_reach_the_optimum_of_their_normal_equations():
    ratings, decay = some_ratings(1_000), 0.2
    model = Factorisation(settings(dim=0, epochs=1_500, learning_rate=1e-3, weight_decay=decay)).fit(ratings)
    design = np.zeros((1_000, 80 + 60))  # one column per user and per item
    design[np.arange(1_000), ratings.users] = design[np.arange(1_000), 80 + ratings.items] = 1
    normal = design.T @ design + decay * np.diag(design.sum(0))
    optimum = np.linalg.solve(normal, design.T @ (ratings.values - ratings.values.mean(dtype=np.float64)))
    np.testing.assert_allclose(np.concatenate([model.users.biases, model.items.biases]), optimum, atol=5e-3)
    assert np.abs(optimum).max() > 0.3


def test_one_seed_gives_the_same_bits_on_any_number_of_threads():
    ratings = some_ratings()
    one = Factorisation(settings(seed=3)).fit(ratings)
    for threads in (1, 2, 8):
        other = Factorisation(settings(seed=3, threads=threads)).fit(ratings)
        assert same(one, other) and one.rmse == other.rmse
    assert not same(one, Factorisation(settings(seed=4)).fit(ratings))


def test_fit_restarts_and_equals_single_epochs():
    ratings = some_ratings()
    model = Factorisation(settings(epochs=2)).fit(some_ratings(500, seed=1)).fit(ratings)
    stepwise = Factorisation(settings(epochs=2)).partial_fit(ratings).partial_fit(ratings)
    assert same(model, stepwise) and model.rmse == stepwise.rmse and model.rmse[1] < model.rmse[0]


def test_a_loaded_model_continues_as_the_saved_one(tmp_path: Path):
    first, second = some_ratings(), Ratings.from_columns(["1", "new"], ["2", "other"], [4, 5])
    never = Factorisation(settings(dim=16)).fit(first)
    never.save(tmp_path / "model")
    loaded = Factorisation.load(tmp_path / "model")
    assert same(never, loaded) and loaded.settings == never.settings
    for model in (never, loaded):
        model.partial_fit(second, epochs=2).partial_fit(first)
    assert same(never, loaded) and loaded.users.names[-1] == "new"


def test_unknown_users_and_items_are_predicted_by_the_biases():
    model = Factorisation(settings()).fit(some_ratings())
    assert model.mean is not None
    user, item = (
        model.users.biases[model.users.names.index("7")],
        model.items.biases[model.items.names.index("9")],
    )
    known, no_user, no_item, neither = model.predict(["7", "?", "7", "?"], [9, 9, -1, -1][:4])
    np.testing.assert_allclose(
        [no_user, no_item, neither], [model.mean + item, model.mean + user, model.mean], rtol=1e-6
    )
    factors = (
        model.users.factors[model.users.names.index("7")] @ model.items.factors[model.items.names.index("9")]
    )
    np.testing.assert_allclose(known, model.mean + user + item + factors, rtol=1e-6)
    assert model.predict([], []).tolist() == []


def test_errors_name_the_reason(tmp_path: Path):
    model = Factorisation(settings())
    for untrained in (lambda: model.predict(["a"], ["x"]), lambda: model.save(tmp_path)):
        with pytest.raises(ValueError, match="is not trained yet; call fit"):
            untrained()
    with pytest.raises(ValueError, match="contains no Factorisation"):
        Factorisation.load(tmp_path)
    with pytest.raises(ValueError, match="diverged at learning_rate 50; choose a lower one"):
        Factorisation(settings(learning_rate=50, epochs=50)).fit(some_ratings())
    with pytest.raises(ValueError, match="2 users and 1 items"):
        model.fit(some_ratings()).predict(["1", "2"], ["1"])
