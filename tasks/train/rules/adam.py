"""Adam, lazily: only touched rows move, and only their moments decay; the bias correction counts global steps.

References:
    Kingma, Ba. Adam: A Method for Stochastic Optimization. ICLR 2015, algorithm 1. https://arxiv.org/abs/1412.6980
    We differ: moments of untouched rows stay as they are. Order of operations as in torch.optim.Adam.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps, bias, over


@dataclass(frozen=True, kw_only=True)
class Adam:
    """Two moments a coordinate."""

    __pydantic_config__ = FORM
    name: Literal["adam"] = "adam"
    learning_rate: float = field(default=0.1, metadata={"description": "Step at the start of training", "gt": 0})
    beta1: float = field(default=0.9, metadata={"description": "Decay of the first moment", "ge": 0, "lt": 1})
    beta2: float = field(default=0.999, metadata={"description": "Decay of the second moment", "ge": 0, "lt": 1})
    epsilon: float = field(default=1e-8, metadata={"description": "Keeps the division finite", "gt": 0})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Both moments, shape of the rows, zero."""
        return {"first": torch.zeros_like(rows), "second": torch.zeros_like(rows)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD, ``step`` counts from 1."""
        first = state["first"].lerp_(grad, 1 - self.beta1)
        second = state["second"].mul_(self.beta2).addcmul_(grad, grad, value=1 - self.beta2)
        denominator = (second.sqrt() / bias(self.beta2, step) ** 0.5).add_(self.epsilon)
        rows.addcdiv_(first * -over(rate, bias(self.beta1, step)), denominator)
