"""NAdam: Adam with Nesterov's momentum, which warms up.

    μ_t = β₁ · (1 − ½ · 0.96^(t · ψ));  M_t = μ_1 · … · μ_t
    rows -= lr · weight · ((1 − μ_t) / (1 − M_t) · grad + μ_{t+1} / (1 − M_{t+1}) · first) / (√(second / (1 − β₂^t)) + ε)

M_t follows from t alone: each factor is below β₁, so 1 − M_t is 1 in float64 after some hundred steps.

References:
    Dozat. Incorporating Nesterov Momentum into Adam. ICLR workshop 2016, algorithm 2. Order of operations as in torch.optim.NAdam.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps, bias, times


@dataclass(frozen=True, kw_only=True)
class NAdam:
    """Two moments a coordinate."""

    __pydantic_config__ = FORM
    name: Literal["nadam"] = "nadam"
    learning_rate: float = field(default=0.03, metadata={"description": "Step at the start of training", "gt": 0})
    beta1: float = field(default=0.9, metadata={"description": "Decay of the first moment", "ge": 0, "lt": 1})
    beta2: float = field(default=0.999, metadata={"description": "Decay of the second moment", "ge": 0, "lt": 1})
    epsilon: float = field(default=1e-8, metadata={"description": "Keeps the division finite", "gt": 0})
    momentum_decay: float = field(default=0.004, metadata={"description": "ψ: how fast the momentum reaches beta1", "ge": 0})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Both moments, shape of the rows, zero."""
        return {"first": torch.zeros_like(rows), "second": torch.zeros_like(rows)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD, ``step`` counts from 1."""
        first = state["first"].lerp_(grad, 1 - self.beta1)
        second = state["second"].mul_(self.beta2).addcmul_(grad, grad, value=1 - self.beta2)
        denominator = second.div(bias(self.beta2, step)).sqrt_().add_(self.epsilon)
        now, then = self._momentum(step), self._momentum(step + 1)
        rows.addcdiv_(grad * -times(rate, (1 - now) / (1 - self._product(step))), denominator)
        rows.addcdiv_(first * -times(rate, then / (1 - self._product(step + 1))), denominator)

    def _momentum(self, step: Steps) -> Any:
        """μ of a step, or float64 (unique, 1) of each row's."""
        return self.beta1 * (1 - 0.5 * 0.96 ** ((step.double() if isinstance(step, Tensor) else step) * self.momentum_decay))

    def _product(self, step: Steps) -> Any:
        """M of a step, or float64 (unique, 1) of each row's."""
        products = _products(self)
        if isinstance(step, Tensor):
            return torch.tensor(products, dtype=torch.float64, device=step.device)[step.long().clamp(max=len(products) - 1)]
        return products[min(step, len(products) - 1)]


@lru_cache
def _products(rule: NAdam) -> list[float]:
    """M_0 = 1, M_1, M_2 and so on until 1 − M is 1 in float64; the last is zero and stands for all that follow."""
    products = [1.0]
    while products[-1] > 2**-54:
        products.append(products[-1] * rule._momentum(len(products)))
    return [*products[:-1], 0.0]
