"""Defines the base class of all optimizers, and functions that several optimizers use.

An optimizer does not count steps, but gets the number of the step from its caller. Therefore, an optimizer
has no state except the state of each row.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from storage.lazy import Tensor, torch
from tasks.form import configurable

State = dict[str, Tensor]
Steps = int | Tensor
"""Step number, from 1: an int for all rows or, with ``train.per_row_steps``, a tensor (unique, 1)."""


@configurable
class RowOptimizer:
    """Base class of the optimizers. The fields are hyper-parameters, named as in torch.optim."""

    # Initial value, or name of the field with the initial value, of each state with the shape of the rows.
    STATE: ClassVar[dict[str, float | str]] = {}
    name: str
    learning_rate: float

    def initial_state(self, rows: Tensor) -> State:
        """Returns the optimizer state of ``rows`` before the first step, as tensors by name."""
        fields: dict[Any, Any] = vars(self)
        return {name: torch.full_like(rows, fields.get(value, value)) for name, value in self.STATE.items()}

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Updates the rows that occur in a step, and the optimizer state of these rows, in place.

        Args:
            rows: Rows that occur in the step, (unique, dim).
            grad: Gradients of these rows, (unique, dim).
            state: Optimizer state of these rows.
            rate: Learning rate of the step, multiplied by the weight of each row, (unique, 1).
            step: Number of the step, from 1, or the number of steps in which each row has occurred, float32
                (unique, 1).
        """
        raise NotImplementedError


@dataclass
class ParameterUpdate:
    """Rows of a table or dense parameter that a step updates, with their gradients and optimizer state."""

    rows: Tensor  # (unique, dim), which the step updates in place; must not require a gradient
    grad: Tensor  # (unique, dim): gradients of these rows, which clipping may change in place
    state: State  # optimizer state of these rows, which the step updates in place
    weights: Tensor | float = 1.0  # (unique, 1): factor on the learning rate of each row
    table_rows: int = 0  # number of rows of the table; 0: the update contains all rows


def bias_correction(beta: float, step: Steps) -> float | Tensor:
    """Returns 1 − β^step, the divisor that removes the bias of an exponential average that starts at zero.

    If ``step`` is a tensor (unique, 1), the result is a tensor with this shape. It is computed in float64 and
    rounded to float32, because 1 − 0.999 loses three digits in float32.
    """
    return (1 - torch.pow(beta, step.double())).float() if isinstance(step, torch.Tensor) else 1 - beta**step


def divide_rate(rate: Tensor, divisor: float | Tensor) -> Tensor:
    """Divides a learning rate in float64 and rounds the result, as torch does with Python floats."""
    return (rate.double() / divisor).to(rate.dtype)
