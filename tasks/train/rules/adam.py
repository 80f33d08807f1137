"""Adam and its variants, lazily: only touched rows move, and only their moments decay.

The bias correction counts global steps, or each row's own (``train.per_row_steps``). Order of operations as in torch.optim.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps, bias, over, times


@dataclass(frozen=True, kw_only=True)
class Adam:
    """Adam, lazily: only touched rows move, and only their moments decay; the bias correction counts global steps.

    References:
        Kingma, Ba. Adam: A Method for Stochastic Optimization. ICLR 2015, algorithm 1. https://arxiv.org/abs/1412.6980
        We differ: moments of untouched rows stay as they are. Order of operations as in torch.optim.Adam.
    """

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


@dataclass(frozen=True, kw_only=True)
class AMSGrad:
    """AMSGrad: Adam whose denominator never falls, since it takes the largest second moment so far.

    References:
        Reddi, Kale, Kumar. On the Convergence of Adam and Beyond. ICLR 2018, algorithm 2. https://arxiv.org/abs/1904.09237
        Bias corrections and order of operations as in torch.optim.Adam(amsgrad=True), so that dense runs agree to the bit.
    """

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


@dataclass(frozen=True, kw_only=True)
class AdamW:
    """AdamW: Adam with weight decay beside the gradient: rows *= 1 − lr · weight · decay, then Adam's step.

    Lazily: a row decays when it is touched, once a touch. So a rare word decays less over a run than a common one.

    References:
        Loshchilov, Hutter. Decoupled Weight Decay Regularization. ICLR 2019, algorithm 2. https://arxiv.org/abs/1711.05101
        Order of operations as in torch.optim.AdamW, so that dense runs agree to the bit.
    """

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


@dataclass(frozen=True, kw_only=True)
class Adamax:
    """Adamax: Adam with the largest gradient of late in place of the second moment.

        first = β₁ · first + (1 − β₁) · grad;  largest = max(decay · largest, |grad| + ε);  rows -= lr · weight / (1 − β₁^t) · first / largest

    References:
        Kingma, Ba. Adam: A Method for Stochastic Optimization. ICLR 2015, algorithm 2. https://arxiv.org/abs/1412.6980
        Order of operations as in torch.optim.Adamax, so that dense runs agree to the bit.
    """

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


@dataclass(frozen=True, kw_only=True)
class NAdam:
    """NAdam: Adam with Nesterov's momentum, which warms up.

        μ_t = β₁ · (1 − ½ · 0.96^(t · ψ));  M_t = μ_1 · … · μ_t
        rows -= lr · weight · ((1 − μ_t) / (1 − M_t) · grad + μ_{t+1} / (1 − M_{t+1}) · first) / (√(second / (1 − β₂^t)) + ε)

    M_t follows from t alone: each factor is below β₁, so 1 − M_t is 1 in float64 after some hundred steps.

    References:
        Dozat. Incorporating Nesterov Momentum into Adam. ICLR workshop 2016, algorithm 2. Order of operations as in torch.optim.NAdam.
    """

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
