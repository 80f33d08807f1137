"""AMSGrad: Adam whose denominator never falls, since it takes the largest second moment so far.

References:
    Reddi, Kale, Kumar. On the Convergence of Adam and Beyond. ICLR 2018, algorithm 2. https://arxiv.org/abs/1904.09237
    Bias corrections and order of operations as in torch.optim.Adam(amsgrad=True), so that dense runs agree to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps, bias, over


@dataclass(frozen=True, kw_only=True)
class AMSGrad:
    """Two moments a coordinate, and the largest second one."""

    __pydantic_config__ = FORM
    name: Literal["amsgrad"] = "amsgrad"
    learning_rate: float = field(default=0.1, metadata={"description": "Step at the start of training", "gt": 0})
    beta1: float = field(default=0.9, metadata={"description": "Decay of the first moment", "ge": 0, "lt": 1})
    beta2: float = field(default=0.999, metadata={"description": "Decay of the second moment", "ge": 0, "lt": 1})
    epsilon: float = field(default=1e-8, metadata={"description": "Keeps the division finite", "gt": 0})
    initial_largest: float = field(default=0.0, metadata={"description": "Largest second moment before the first step; above 0 the first steps are shorter", "ge": 0})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Both moments, zero, and the largest second one; shape of the rows."""
        return {"first": torch.zeros_like(rows), "second": torch.zeros_like(rows), "largest": torch.full_like(rows, self.initial_largest)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD, ``step`` counts from 1."""
        first = state["first"].lerp_(grad, 1 - self.beta1)
        second = state["second"].mul_(self.beta2).addcmul_(grad, grad, value=1 - self.beta2)
        largest = torch.maximum(state["largest"], second, out=state["largest"])
        denominator = (largest.sqrt() / bias(self.beta2, step) ** 0.5).add_(self.epsilon)
        rows.addcdiv_(first * -over(rate, bias(self.beta1, step)), denominator)
