"""What optimizers share. None keeps a step count: ``step`` is an argument, so a row's state is all there is
to store and move.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from tasks.form import configurable

State = dict[str, Tensor]
Steps = int | Tensor
"""Steps so far, this one included: of all rows, or (unique, 1) of each (``train.per_row_steps``)."""


@configurable
class RowOptimizer:
    """Base of the optimizers; the fields of each are its hyper-parameters, named as in torch.optim."""

    STATE: ClassVar[dict[str, float | str]] = {}  # initial values; a string names a hyper-parameter
    name: str
    learning_rate: float

    def initial_state(self, rows: Tensor) -> State:
        """Tensors with one row for each row, by name; by default of the rows' shape."""
        values: dict[Any, Any] = vars(self)
        return {key: torch.full_like(rows, values.get(start, start)) for key, start in self.STATE.items()}

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Updates rows (unique, dim) and their state in place from grad (unique, dim); ``rate`` (unique, 1)
        is the learning rate of this step times the rows' weights, steps count from 1.
        """
        raise NotImplementedError


@dataclass
class ParameterUpdate:
    """What a step updates of one table or dense parameter."""

    rows: Tensor  # (unique, dim), updated in place; no leaf that requires a gradient
    grad: Tensor  # (unique, dim), overwritten by clipping
    state: State  # of these rows, updated in place
    weights: Tensor | float = 1.0  # (unique, 1): factor on each row's step
    table_rows: int = 0  # of the whole table; 0 where these are all


def bias(beta: float, step: Steps) -> float | Tensor:
    """1 − β^step, the bias correction of an average that began at zero; for per-row counts float32
    (unique, 1), computed in float64: 1 − .999 loses four digits in float32.
    """
    return (1 - torch.pow(beta, step.double())).float() if isinstance(step, Tensor) else 1 - beta**step


def over(rate: Tensor, divisor: float | Tensor) -> Tensor:
    """The rate divided and rounded once, as exact as torch's own division of Python floats."""
    return (rate.double() / divisor).to(rate.dtype)
