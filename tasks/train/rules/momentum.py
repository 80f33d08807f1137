"""Momentum (heavy ball): velocity = momentum · velocity + (1 − dampening) · grad; rows -= lr · weight · velocity.

The first gradient of a row is not dampened, as in torch.optim.SGD; first is a row whose velocity is zero.

References:
    Polyak. Some methods of speeding up the convergence of iteration methods. USSR Computational Mathematics and Mathematical
    Physics 4 (1964). Order of operations as in torch.optim.SGD, so that dense runs agree to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps


@dataclass(frozen=True, kw_only=True)
class Momentum:
    """A velocity a coordinate."""

    __pydantic_config__ = FORM
    name: Literal["momentum"] = "momentum"
    learning_rate: float = field(default=150.0, metadata={"description": "Step at the start of training", "gt": 0})
    momentum: float = field(default=0.9, metadata={"description": "Share of the velocity that is kept", "ge": 0, "lt": 1})
    dampening: float = field(default=0.0, metadata={"description": "Share of the gradient that is left out of the velocity", "ge": 0, "lt": 1})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Velocity, shape of the rows, zero."""
        return {"velocity": torch.zeros_like(rows)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD."""
        velocity = state["velocity"]
        first = ~velocity.any(1, keepdim=True) if self.dampening else None
        velocity.mul_(self.momentum).add_(grad, alpha=1 - self.dampening)
        if first is not None:
            velocity.copy_(torch.where(first, grad, velocity))
        rows.addcmul_(velocity, rate, value=-1)
