"""Adagrad, an accumulator a coordinate: sum += grad²; rows -= lr · weight · grad / (√sum + ε).

References:
    Duchi, Hazan, Singer. Adaptive Subgradient Methods for Online Learning and Stochastic Optimization. JMLR 12 (2011),
    figure 1 (diagonal form). Order of operations as in torch.optim.Adagrad, so that dense runs agree to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps


@dataclass(frozen=True, kw_only=True)
class Adagrad:
    """One accumulator a coordinate."""

    __pydantic_config__ = FORM
    name: Literal["adagrad"] = "adagrad"
    learning_rate: float = field(default=0.05, metadata={"description": "Step at the start of training", "gt": 0})
    epsilon: float = field(default=1e-10, metadata={"description": "Keeps the first division finite", "gt": 0})
    initial_sum: float = field(default=0.0, metadata={"description": "Accumulator before the first step; above 0 the first steps are shorter", "ge": 0})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Accumulator, shape of the rows, at its start."""
        return {"sum": torch.full_like(rows, self.initial_sum)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD."""
        total = state["sum"].addcmul_(grad, grad, value=1.0)
        rows.addcdiv_(grad * -rate, total.sqrt().add_(self.epsilon))
