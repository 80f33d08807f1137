"""Adadelta: steps in units of the rows' own recent steps.

    squares = ρ · squares + (1 − ρ) · grad²;  δ = √(steps + ε) / √(squares + ε) · grad
    steps = ρ · steps + (1 − ρ) · δ²;  rows -= lr · weight · δ

The recorded steps are δ, without rate and weight, so that a weight stays out of the state.

References:
    Zeiler. ADADELTA: An Adaptive Learning Rate Method. 2012, algorithm 1. https://arxiv.org/abs/1212.5701
    Order of operations as in torch.optim.Adadelta, so that dense runs agree to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps


@dataclass(frozen=True, kw_only=True)
class Adadelta:
    """Two averages a coordinate, no scale to choose."""

    __pydantic_config__ = FORM
    name: Literal["adadelta"] = "adadelta"
    learning_rate: float = field(default=1000.0, metadata={"description": "Step at the start of training", "gt": 0})
    decay: float = field(default=0.9, metadata={"description": "Decay of both averages", "ge": 0, "lt": 1})
    epsilon: float = field(default=1e-6, metadata={"description": "Keeps the division finite", "gt": 0})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Averages of squared gradients and of squared steps, shape of the rows, zero."""
        return {"squares": torch.zeros_like(rows), "moves": torch.zeros_like(rows)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD."""
        squares = state["squares"].mul_(self.decay).addcmul_(grad, grad, value=1 - self.decay)
        delta = state["moves"].add(self.epsilon).sqrt_().div_(squares.add(self.epsilon).sqrt_()).mul_(grad)
        state["moves"].mul_(self.decay).addcmul_(delta, delta, value=1 - self.decay)
        rows.addcmul_(delta, rate, value=-1)
