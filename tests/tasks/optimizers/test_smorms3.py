"""SMORMS3 against its reference values: one coordinate, start 1, largest rate .1."""

import pytest
import torch

from tasks.optimizers import SMORMS3

BOWL = [0.8585786438, 0.7472590445, 0.6491404080, 0.5582700214, 0.4719335135, 0.3891607955]
BOWL_MEMORY = [1.5, 1.4560518145, 1.2756960531, 1.1547240600, 1.1001218000, 1.0822667461]
SIGNS = [0.8585786438, 0.8756533382, 0.8085932358, 0.6991971014, 0.7115218337, 0.6320481919]


def moves(gradient_of, steps: int = 6) -> list[tuple[float, float]]:
    """(row, memory) after each step in float64."""
    optimizer, row = SMORMS3(learning_rate=0.1), torch.ones(1, 1, dtype=torch.float64)
    state, seen = optimizer.initial_state(row), []
    for step in range(1, steps + 1):
        optimizer.update_(
            row, gradient_of(row, step), state, torch.full((1, 1), 0.1, dtype=torch.float64), step
        )
        seen.append((row.item(), state["memory"].item()))
    return seen


def test_on_a_bowl():
    rows, memories = zip(*moves(lambda row, step: row.clone()), strict=True)
    assert rows == pytest.approx(BOWL, abs=1e-10)
    assert memories == pytest.approx(BOWL_MEMORY, abs=1e-10)


def test_on_gradients_that_turn():
    signs = [1.0, -1.0, 1.0, 1.0, -1.0, 1.0]
    rows, memories = zip(
        *moves(lambda row, step: torch.full((1, 1), signs[step - 1], dtype=torch.float64)), strict=True
    )
    assert rows == pytest.approx(SIGNS, abs=1e-10)
    assert memories[-1] == pytest.approx(5.3096750365, abs=1e-10)


@pytest.mark.parametrize("grad", [1e-6, 0.3, -2000.0])
def test_the_first_step_has_one_length_whatever_the_gradient(grad: float):
    assert moves(lambda row, step: torch.full((1, 1), grad, dtype=torch.float64), 1)[0][0] == pytest.approx(
        1 - 0.1 * 2**0.5 * (1 if grad > 0 else -1), abs=1e-4
    )


def test_a_gradient_of_zero_for_ever_is_no_trouble():
    assert moves(lambda row, step: torch.zeros_like(row), 3) == [(1.0, 2.0), (1.0, 3.0), (1.0, 4.0)]
