"""Nesterov's momentum: velocity = momentum · velocity + grad; rows -= lr · weight · (grad + momentum · velocity).

References:
    Sutskever, Martens, Dahl, Hinton. On the importance of initialization and momentum in deep learning. ICML 2013, section 2.
    Order of operations as in torch.optim.SGD(nesterov=True), so that dense runs agree to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps


@dataclass(frozen=True, kw_only=True)
class Nesterov:
    """A velocity a coordinate, and a look one step ahead."""

    __pydantic_config__ = FORM
    name: Literal["nesterov"] = "nesterov"
    learning_rate: float = field(default=150.0, metadata={"description": "Step at the start of training", "gt": 0})
    momentum: float = field(default=0.9, metadata={"description": "Share of the velocity that is kept", "gt": 0, "lt": 1})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Velocity, shape of the rows, zero."""
        return {"velocity": torch.zeros_like(rows)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD."""
        velocity = state["velocity"].mul_(self.momentum).add_(grad)
        rows.addcmul_(grad.add(velocity, alpha=self.momentum), rate, value=-1)
