"""Defines the interface of the optimizers, and functions that several of them use.

Optimizers do not count steps: ``step`` is an argument, so the state of the rows is the complete state.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from tasks.form import configurable

State = dict[str, Tensor]
Steps = int | Tensor
"""Step number, from 1: an int for all rows, or a tensor (unique, 1) per row (``train.per_row_steps``)."""


@configurable
class RowOptimizer:
    """Base class of the optimizers, whose fields are hyper-parameters with the names of torch.optim."""

    STATE: ClassVar[dict[str, float | str]] = {}  # initial values; a string names a hyper-parameter
    name: str
    learning_rate: float

    def initial_state(self, rows: Tensor) -> State:
        """Returns the initial state tensors by name, with one entry per row of ``rows``."""
        values: dict[Any, Any] = vars(self)
        return {key: torch.full_like(rows, values.get(start, start)) for key, start in self.STATE.items()}

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Updates the rows of one step and their state in place.

        Args:
            rows: Rows that occur in the step, (unique, dim).
            grad: Gradients of these rows, (unique, dim).
            state: Optimizer state of these rows.
            rate: Learning rate of the step times the weight of each row, (unique, 1).
            step: Number of the step, from 1, or float32 (unique, 1): number of steps of each row.
        """
        raise NotImplementedError


@dataclass
class ParameterUpdate:
    """The rows of one table or dense parameter that a step updates, with their gradients and state."""

    rows: Tensor  # (unique, dim), updated in place; not a leaf that requires a gradient
    grad: Tensor  # (unique, dim), modified by clipping
    state: State  # optimizer state of these rows, updated in place
    weights: Tensor | float = 1.0  # (unique, 1): factor on each row's step
    table_rows: int = 0  # number of rows of the table; 0 if the update contains all rows


def bias_correction(beta: float, step: Steps) -> float | Tensor:
    """Returns 1 − β^step, the bias correction of an exponential average that is initialized with zero.

    For steps per row, the result is float32 (unique, 1). It is computed in float64, because 1 − 0.999 loses
    three digits in float32.
    """
    return (1 - torch.pow(beta, step.double())).float() if isinstance(step, Tensor) else 1 - beta**step


def divide_rate(rate: Tensor, divisor: float | Tensor) -> Tensor:
    """Divides a learning rate in float64 and rounds once, as exactly as torch divides Python floats."""
    return (rate.double() / divisor).to(rate.dtype)
