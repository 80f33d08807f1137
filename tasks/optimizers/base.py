"""Base class and helpers of the optimizers.

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
    """Base class of the optimizers; their fields are hyper-parameters, named as in torch.optim."""

    STATE: ClassVar[dict[str, float | str]] = {}  # initial values; a string names a hyper-parameter
    name: str
    learning_rate: float

    def initial_state(self, rows: Tensor) -> State:
        """Returns state tensors by name, with an entry per row; by default of the shape of ``rows``."""
        values: dict[Any, Any] = vars(self)
        return {key: torch.full_like(rows, values.get(start, start)) for key, start in self.STATE.items()}

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Updates rows (unique, dim) and their state in place from their gradients (unique, dim). ``rate``
        (unique, 1) is the learning rate of this step times the weights of the rows.
        """
        raise NotImplementedError


@dataclass
class ParameterUpdate:
    """The rows of one table or dense parameter that a step updates."""

    rows: Tensor  # (unique, dim), updated in place; not a leaf that requires a gradient
    grad: Tensor  # (unique, dim), modified by clipping
    state: State  # of these rows, updated in place
    weights: Tensor | float = 1.0  # (unique, 1): factor on each row's step
    table_rows: int = 0  # number of rows of the table; 0 if the update contains all


def bias_correction(beta: float, step: Steps) -> float | Tensor:
    """Returns 1 − β^step, the bias correction of an average initialized with zero. For steps per row, it is
    float32 (unique, 1), computed in float64 because 1 − 0.999 loses three digits in float32.
    """
    return (1 - torch.pow(beta, step.double())).float() if isinstance(step, Tensor) else 1 - beta**step


def divide_rate(rate: Tensor, divisor: float | Tensor) -> Tensor:
    """Divides the rate in float64 and rounds once, to be as exact as torch's division of Python floats."""
    return (rate.double() / divisor).to(rate.dtype)
