"""SMORMS3: a rate a coordinate by how well its gradients agree, and a memory as long as they do.

    r = 1 / (memory + 1);  mean = (1 − r) · mean + r · grad;  squares = (1 − r) · squares + r · grad²
    agreement = mean² / (squares + ε);  rows -= weight · grad · min(lr, agreement) / (√squares + ε)
    memory = 1 + memory · (1 − agreement)

``learning_rate`` is the largest rate: it binds at first and wherever gradients agree. The rate of a step relative to it
(schedule times weight) multiplies the step. ε is far below any gradient of use; gradients near 1e-8 are damped by it.

References:
    Funk. RMSprop loses to SMORMS3: Beware the Epsilon! 2015. https://sifter.org/~simon/journal/20150420.html
    We differ from none of its formulas; the memory takes the agreement before it is clamped, which some libraries do not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps, over


@dataclass(frozen=True, kw_only=True)
class SMORMS3:
    """Three numbers a coordinate."""

    __pydantic_config__ = FORM
    name: Literal["smorms3"] = "smorms3"
    learning_rate: float = field(default=0.05, metadata={"description": "Step at the start of training", "gt": 0})
    epsilon: float = field(default=1e-16, metadata={"description": "Keeps the division finite", "gt": 0})
    initial_memory: float = field(default=1.0, metadata={"description": "Steps that the averages look back over at first", "ge": 1})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Memory, mean and mean of squares, shape of the rows."""
        return {"memory": torch.full_like(rows, self.initial_memory), "mean": torch.zeros_like(rows), "squares": torch.zeros_like(rows)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD."""
        memory, mean, squares = state["memory"], state["mean"], state["squares"]
        share = 1 / (memory + 1)
        mean.lerp_(grad, share)
        squares.lerp_(grad * grad, share)
        agreement = mean * mean / (squares + self.epsilon)
        length = agreement.clamp(max=self.learning_rate).div_(squares.sqrt().add_(self.epsilon))
        rows.addcmul_(grad * length, over(rate, self.learning_rate), value=-1)
        memory.mul_(1 - agreement).add_(1)
