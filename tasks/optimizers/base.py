"""Base class of the optimizers, and functions that several optimizers use.

An optimizer does not count steps. The caller passes the number of the step, so that an optimizer has no state
except that of the rows.
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
    """Base class of the optimizers. Their fields are hyper-parameters, named as in torch.optim."""

    STATE: ClassVar[dict[str, float | str]] = {}  # name -> initial value, or name of a field that contains it
    name: str
    learning_rate: float

    def initial_state(self, rows: Tensor) -> State:
        """Returns the initial state: tensors by name, with one entry per row of ``rows``."""
        values: dict[Any, Any] = vars(self)
        return {key: torch.full_like(rows, values.get(start, start)) for key, start in self.STATE.items()}

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Updates the rows that occur in a step, and the optimizer state of these rows, in place.

        Args:
            rows: Rows that occur in the step, (unique, dim).
            grad: Gradients of these rows, (unique, dim).
            state: Optimizer state of these rows.
            rate: Learning rate of the step times the weight of each row, (unique, 1).
            step: Number of the step, from 1, or the number of steps of each row, float32 (unique, 1).
        """
        raise NotImplementedError


@dataclass
class ParameterUpdate:
    """Rows of one table or dense parameter that a step updates, with their gradients and optimizer state."""

    rows: Tensor  # (unique, dim), updated in place; must not require a gradient
    grad: Tensor  # (unique, dim), modified by clipping
    state: State  # optimizer state of these rows, updated in place
    weights: Tensor | float = 1.0  # (unique, 1): factor on the learning rate of each row
    table_rows: int = 0  # number of rows of the table; 0 if the update contains all rows


def bias_correction(beta: float, step: Steps) -> float | Tensor:
    """Returns 1 − β^step: the divisor that removes the bias of an exponential average that starts at zero.

    If ``step`` is a tensor (unique, 1), the result is a tensor of this shape. It is computed in float64 and
    rounded to float32, because 1 − 0.999 loses three digits in float32.
    """
    return (1 - torch.pow(beta, step.double())).float() if isinstance(step, torch.Tensor) else 1 - beta**step


def divide_rate(rate: Tensor, divisor: float | Tensor) -> Tensor:
    """Divides a learning rate in float64 and rounds the result, as torch does with Python floats."""
    return (rate.double() / divisor).to(rate.dtype)
