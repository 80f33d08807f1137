"""The law of every optimizer: dense, it is torch.optim to the bit; sparse, it is a plain loop in float64; a
weight scales the step alone.
"""

import dataclasses
from pathlib import Path
from typing import get_args

import numpy as np
import pydantic
import pytest
import torch
from safetensors.torch import load_file, save_file

from storage.tables import Resident
from tasks.optimizers import ASGD, Adadelta, Adagrad, AdamW, Momentum, NAdam, Optimizer, RMSprop
from tests.tasks.optimizers.references import REFERENCES
from tests.tasks.optimizers.torch_twins import WITHOUT_TORCH, torch_optimizer

KINDS = get_args(Optimizer)
OPTIONS = [
    Adagrad(learning_rate=0.1, initial_accumulator_value=0.1),
    Momentum(learning_rate=0.1, dampening=0.3),
    RMSprop(learning_rate=0.1, centered=True),
    RMSprop(learning_rate=0.1, momentum=0.9),
    RMSprop(learning_rate=0.1, momentum=0.5, centered=True, alpha=0.9),
    ASGD(learning_rate=0.1, t0=10, lambd=0.01),
    AdamW(learning_rate=0.1, weight_decay=0.3),
]
OPTIMIZERS = [pytest.param(kind(learning_rate=0.1), id=kind.__name__) for kind in KINDS]
OPTIMIZERS += [
    pytest.param(optimizer, id=f"{type(optimizer).__name__}-option-{number}")
    for number, optimizer in enumerate(OPTIONS)
]
STEPS, TOKENS, DIM = 50, 11, 6


def gradients(steps: int = STEPS, tokens: int = TOKENS, dim: int = DIM, seed: int = 3) -> torch.Tensor:
    """Makes gradients whose sizes differ strongly between tokens, as for rare and common tokens."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(steps, tokens, dim, generator=generator) * torch.logspace(-3, 1, tokens)[:, None]


def start(tokens: int = TOKENS, dim: int = DIM) -> torch.Tensor:
    return torch.randn(tokens, dim, generator=torch.Generator().manual_seed(1))


def rates(optimizer: Optimizer, rows: int) -> torch.Tensor:
    return torch.full((rows, 1), optimizer.learning_rate)


def run_dense(
    optimizer: Optimizer, grads: torch.Tensor, rows: torch.Tensor, weights: torch.Tensor | float = 1.0
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    rows, state = rows.clone(), optimizer.initial_state(rows)
    for step, grad in enumerate(grads, start=1):
        optimizer.update_(rows, grad.clone(), state, rates(optimizer, len(rows)) * weights, step)
    return rows, state


LEARNING_RATE = (
    0.125  # a float32: our rate is a float32 a row (it carries the row's weight), torch's a Python float
)


def test_every_optimizer_has_a_reference():
    assert set(KINDS) == set(REFERENCES)


@pytest.mark.parametrize(
    "optimizer",
    [
        optimizer
        for optimizer in OPTIMIZERS
        if type(optimizer.values[0]) not in WITHOUT_TORCH and not getattr(optimizer.values[0], "centered", 0)
    ],
)
def test_updates_of_all_rows_equal_torch(optimizer: Optimizer):
    """After each of 50 steps the bits of torch. NAdam: torch multiplies its momenta up in float32, we derive
    the product in float64."""
    optimizer = dataclasses.replace(optimizer, learning_rate=LEARNING_RATE)
    parameter = torch.nn.Parameter(start())
    theirs = torch_optimizer(optimizer, parameter)
    rows, state = start(), optimizer.initial_state(start())
    for step, grad in enumerate(gradients(), start=1):
        parameter.grad = grad.clone()
        theirs.step()
        optimizer.update_(rows, grad.clone(), state, rates(optimizer, TOKENS), step)
        if isinstance(optimizer, NAdam):
            assert_within_one_ulp(rows, parameter.detach())
        else:
            assert torch.equal(rows, parameter.detach()), f"step {step}"
    if isinstance(optimizer, ASGD):
        assert_within_one_ulp(
            state["average"], theirs.state[parameter]["ax"]
        )  # torch adds a share of the difference, we interpolate


def assert_within_one_ulp(found: torch.Tensor, expected: torch.Tensor) -> None:
    """Asserts that rows differ by at most one ulp of the largest number of the row."""
    ulp = torch.finfo(torch.float32).eps * expected.abs().amax(1, keepdim=True)
    assert ((found - expected).abs() <= ulp).all()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_sparse_updates_equal_a_plain_loop(optimizer: Optimizer):
    rng = np.random.default_rng(5)
    table = Resident(start(), optimizer.initial_state(start()))
    expected, memories = start().double().numpy(), [{} for _ in range(TOKENS)]
    weights = np.linspace(0.2, 5.0, TOKENS)
    for step, grad in enumerate(gradients(), start=1):
        touched = np.sort(rng.choice(TOKENS, size=4, replace=False))
        ids = torch.from_numpy(touched)
        rows, state = table.gather(ids)
        rate = np.float32(weights[touched, None]) * np.float32(optimizer.learning_rate)
        optimizer.update_(rows, grad[ids], state, torch.from_numpy(rate), step)
        table.write_back(ids, rows, state)
        for token in touched:
            expected[token] = REFERENCES[type(optimizer)](
                optimizer,
                expected[token],
                grad[token].double().numpy(),
                memories[token],
                optimizer.learning_rate * weights[token],
                step,
            )
    np.testing.assert_allclose(table.rows.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weight", [0.2, 2.0, 5.0])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_row_of_weight_w_makes_a_step_w_times_as_long(optimizer: Optimizer, weight: float):
    """From the same place, state and gradient. The weight is on the step: on the gradient it would cancel in
    all optimizers but SGD's kin."""
    rows = start().double()
    state = optimizer.initial_state(rows)
    for step, grad in enumerate(gradients().double(), start=1):
        others, other_state = rows.clone(), {name: tensor.clone() for name, tensor in state.items()}
        before = rows.clone()
        optimizer.update_(rows, grad.clone(), state, rates(optimizer, TOKENS).double(), step)
        optimizer.update_(others, grad.clone(), other_state, rates(optimizer, TOKENS).double() * weight, step)
        torch.testing.assert_close(others - before, weight * (rows - before), rtol=1e-9, atol=1e-12)
        for name, tensor in state.items():
            assert name == "average" or torch.equal(tensor, other_state[name]), (
                f"the weight must not reach {name}"
            )


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_per_row_steps_equal_separate_training_of_each_row(optimizer: Optimizer):
    """Touched at random and counting its touches, each row is where its own gradients alone would have
    brought it."""
    rng, table, counts = (
        np.random.default_rng(6),
        Resident(start(), optimizer.initial_state(start())),
        torch.zeros(TOKENS, 1),
    )
    seen = [[] for _ in range(TOKENS)]
    for grad in gradients():
        ids = torch.from_numpy(np.sort(rng.choice(TOKENS, size=4, replace=False)))
        counts[ids] += 1
        rows, state = table.gather(ids)
        optimizer.update_(rows, grad[ids], state, rates(optimizer, 4), counts[ids])
        table.write_back(ids, rows, state)
        for token in ids.tolist():
            seen[token].append(grad[token])
    for token in range(TOKENS):
        alone, _ = run_dense(optimizer, torch.stack(seen[token]).unsqueeze(1), start()[token : token + 1])
        torch.testing.assert_close(table.rows[token], alone[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_state_survives_a_file(optimizer: Optimizer, tmp_path: Path):
    """Half the steps, a file, the other half: the bits of the uninterrupted run."""
    whole, _ = run_dense(optimizer, gradients(), start())
    rows, state = run_dense(optimizer, gradients()[:20], start())
    save_file(Resident(rows, state).tensors(), tmp_path / "table.safetensors")
    table = Resident(start(), optimizer.initial_state(start()))
    table.restore(load_file(tmp_path / "table.safetensors").__getitem__)
    assert set(table.state) == set(optimizer.initial_state(start()))
    for step, grad in enumerate(gradients()[20:], start=21):
        optimizer.update_(table.rows, grad, table.state, rates(optimizer, TOKENS), step)
    assert torch.equal(table.rows, whole)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_it_minimizes_a_quadratic_function(optimizer: Optimizer):
    optimizer, target = dataclasses.replace(optimizer, learning_rate=0.5), start()
    optimizer = dataclasses.replace(
        optimizer, **dict.fromkeys(DECAYS & set(dataclasses.asdict(optimizer)), 0.0)
    )
    if isinstance(optimizer, Adadelta):
        optimizer = dataclasses.replace(optimizer, learning_rate=20.0)  # its own units begin at √epsilon
    rows, state = torch.zeros_like(target), optimizer.initial_state(target)
    for step in range(1, 401):
        optimizer.update_(rows, rows - target, state, rates(optimizer, TOKENS) * (1 - step / 401), step)
    torch.testing.assert_close(rows, target, rtol=0, atol=1e-2)


DECAYS = {"weight_decay", "lambd"}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_zero_gradient_moves_nothing_at_the_start(optimizer: Optimizer):
    optimizer = dataclasses.replace(
        optimizer, **dict.fromkeys(DECAYS & set(dataclasses.asdict(optimizer)), 0.0)
    )
    rows, _ = run_dense(optimizer, torch.zeros(3, TOKENS, DIM), start())
    assert torch.equal(rows, start())


@pytest.mark.parametrize(
    "optimizer",
    [AdamW(learning_rate=0.1, weight_decay=0.3), ASGD(learning_rate=0.1, lambd=0.01)],
    ids=lambda optimizer: optimizer.name,
)
def test_decay_pulls_to_zero_without_a_gradient(optimizer: Optimizer):
    rows, _ = run_dense(optimizer, torch.zeros(1, TOKENS, DIM), start())
    torch.testing.assert_close(rows, start() * (0.97 if isinstance(optimizer, AdamW) else 0.999))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_ten_thousand_constant_gradients_leave_rows_finite(optimizer: Optimizer):
    """torch's centered RMSprop writes NaN after 131 steps with alpha .9, and after 1,207 with .99."""
    grad = torch.logspace(-3, 1, TOKENS)[:, None] * torch.tensor([1.0, -1.0])
    rows = run_dense(optimizer, grad.expand(10_000, -1, -1), torch.zeros_like(grad))[0]
    assert torch.isfinite(rows).all() and torch.equal(rows.sign(), -grad.sign())


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_state_has_one_row_per_token(optimizer: Optimizer):
    for name, tensor in optimizer.initial_state(start()).items():
        assert len(tensor) == TOKENS and tensor.dtype == torch.float32, name


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_checked(kind: type):
    check = pydantic.TypeAdapter(kind)
    for wrong in ({"learning_rate": 0}, {"learning_rate": -1}, {"name": "other"}, {"learnign_rate": 0.1}):
        with pytest.raises(pydantic.ValidationError):
            check.validate_python(wrong)
    assert check.validate_python(dataclasses.asdict(kind())) == kind()
