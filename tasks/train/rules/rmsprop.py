"""RMSprop, centred or not, with momentum or not.

    squares = α · squares + (1 − α) · grad²;  centred: mean = α · mean + (1 − α) · grad, squares − mean² in place of squares
    rows -= lr · weight · grad / (√squares + ε), or of the velocity that such steps feed

References:
    Hinton. Neural Networks for Machine Learning, lecture 6e (2012). Centred and with momentum: Graves. Generating Sequences
    With Recurrent Neural Networks. 2013, equations 38 to 41. https://arxiv.org/abs/1308.0850
    Order of operations as in torch.optim.RMSprop, so that dense runs agree to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps


@dataclass(frozen=True, kw_only=True)
class RMSprop:
    """An average of squares a coordinate; two more where they are asked for."""

    __pydantic_config__ = FORM
    name: Literal["rmsprop"] = "rmsprop"
    learning_rate: float = field(default=0.01, metadata={"description": "Step at the start of training", "gt": 0})
    decay: float = field(default=0.99, metadata={"description": "Decay of the averages", "ge": 0, "lt": 1})
    epsilon: float = field(default=1e-8, metadata={"description": "Keeps the division finite", "gt": 0})
    momentum: float = field(default=0.0, metadata={"description": "Share of the velocity that is kept; 0 keeps none", "ge": 0, "lt": 1})
    centred: bool = field(default=False, metadata={"description": "Divide by the spread of the gradient instead of its size"})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """What the options need, shape of the rows, zero."""
        names = ["squares", *(["mean"] if self.centred else []), *(["velocity"] if self.momentum else [])]
        return {name: torch.zeros_like(rows) for name in names}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD."""
        squares = state["squares"].mul_(self.decay).addcmul_(grad, grad, value=1 - self.decay)
        if self.centred:
            mean = state["mean"].lerp_(grad, 1 - self.decay)
            squares = squares.addcmul(mean, mean, value=-1)
        size = squares.sqrt().add_(self.epsilon)
        if self.momentum:
            rows.addcmul_(state["velocity"].mul_(self.momentum).addcdiv_(grad, size), rate, value=-1)
        else:
            rows.addcdiv_(grad * -rate, size)
