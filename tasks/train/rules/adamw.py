"""AdamW: Adam with weight decay beside the gradient: rows *= 1 − lr · weight · decay, then Adam's step.

Lazily: a row decays when it is touched, once a touch. So a rare word decays less over a run than a common one.

References:
    Loshchilov, Hutter. Decoupled Weight Decay Regularization. ICLR 2019, algorithm 2. https://arxiv.org/abs/1711.05101
    Order of operations as in torch.optim.AdamW, so that dense runs agree to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps, bias, over


@dataclass(frozen=True, kw_only=True)
class AdamW:
    """Two moments a coordinate."""

    __pydantic_config__ = FORM
    name: Literal["adamw"] = "adamw"
    learning_rate: float = field(default=0.1, metadata={"description": "Step at the start of training", "gt": 0})
    beta1: float = field(default=0.9, metadata={"description": "Decay of the first moment", "ge": 0, "lt": 1})
    beta2: float = field(default=0.999, metadata={"description": "Decay of the second moment", "ge": 0, "lt": 1})
    epsilon: float = field(default=1e-8, metadata={"description": "Keeps the division finite", "gt": 0})
    weight_decay: float = field(default=0.01, metadata={"description": "Share of a row that a step of rate one takes away", "ge": 0})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Both moments, shape of the rows, zero."""
        return {"first": torch.zeros_like(rows), "second": torch.zeros_like(rows)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD, ``step`` counts from 1."""
        rows.mul_((1 - rate.double() * self.weight_decay).to(rows.dtype))
        first = state["first"].lerp_(grad, 1 - self.beta1)
        second = state["second"].mul_(self.beta2).addcmul_(grad, grad, value=1 - self.beta2)
        denominator = (second.sqrt() / bias(self.beta2, step) ** 0.5).add_(self.epsilon)
        rows.addcdiv_(first * -over(rate, bias(self.beta1, step)), denominator)
