"""Adamax: Adam with the largest gradient of late in place of the second moment.

    first = β₁ · first + (1 − β₁) · grad;  largest = max(decay · largest, |grad| + ε);  rows -= lr · weight / (1 − β₁^t) · first / largest

References:
    Kingma, Ba. Adam: A Method for Stochastic Optimization. ICLR 2015, algorithm 2. https://arxiv.org/abs/1412.6980
    Order of operations as in torch.optim.Adamax, so that dense runs agree to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps, bias, over


@dataclass(frozen=True, kw_only=True)
class Adamax:
    """A moment and a maximum a coordinate."""

    __pydantic_config__ = FORM
    name: Literal["adamax"] = "adamax"
    learning_rate: float = field(default=0.2, metadata={"description": "Step at the start of training", "gt": 0})
    beta1: float = field(default=0.9, metadata={"description": "Decay of the first moment", "ge": 0, "lt": 1})
    maximum_decay: float = field(default=0.999, metadata={"description": "Decay of the largest gradient", "ge": 0, "lt": 1})
    epsilon: float = field(default=1e-8, metadata={"description": "Keeps the division finite", "gt": 0})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """First moment and largest gradient, shape of the rows, zero."""
        return {"first": torch.zeros_like(rows), "largest": torch.zeros_like(rows)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD, ``step`` counts from 1."""
        first = state["first"].lerp_(grad, 1 - self.beta1)
        largest = state["largest"].mul_(self.maximum_decay)
        torch.maximum(largest, grad.abs().add_(self.epsilon), out=largest)
        rows.addcdiv_(first * -over(rate, bias(self.beta1, step)), largest)
