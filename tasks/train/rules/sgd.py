"""Stochastic gradient descent: rows -= lr · weight · grad."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps


@dataclass(frozen=True, kw_only=True)
class SGD:
    """Plain gradient descent, no state."""

    __pydantic_config__ = FORM
    name: Literal["sgd"] = "sgd"
    learning_rate: float = field(default=500.0, metadata={"description": "Step at the start of training", "gt": 0})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """No state."""
        return {}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows in place.

        Args:
            rows: (unique, dim).
            grad: (unique, dim).
            state: Unused.
            rate: (unique, 1): learning rate of this step times the rows' weights.
            step: Unused.
        """
        rows.addcmul_(grad, rate, value=-1)
