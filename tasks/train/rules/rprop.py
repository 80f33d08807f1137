"""Rprop: only the gradient's sign counts; a step length a coordinate grows while the sign stays and shrinks when it turns.

Made for whole-batch gradients: where batches differ, signs turn by chance. ``learning_rate`` is the first step length; the
rate of a step relative to it (schedule times weight) multiplies the step, never the kept length.

References:
    Riedmiller, Braun. A direct adaptive method for faster backpropagation learning: The RPROP algorithm. ICNN 1993.
    The variant without weight backtracking, in the order of torch.optim.Rprop, so that dense runs agree to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps, over


@dataclass(frozen=True, kw_only=True)
class Rprop:
    """A step length and the last gradient a coordinate."""

    __pydantic_config__ = FORM
    name: Literal["rprop"] = "rprop"
    learning_rate: float = field(default=0.1, metadata={"description": "Step at the start of training", "gt": 0})
    shrink: float = field(default=0.5, metadata={"description": "Factor on the step length when the sign turns", "gt": 0, "lt": 1})
    grow: float = field(default=1.2, metadata={"description": "Factor on the step length while the sign stays", "gt": 1})
    shortest: float = field(default=1e-6, metadata={"description": "Lower bound of the step length", "gt": 0})
    longest: float = field(default=50.0, metadata={"description": "Upper bound of the step length", "gt": 0})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Step lengths (the learning rate) and last gradients (zero), shape of the rows."""
        return {"length": torch.full_like(rows, self.learning_rate), "last": torch.zeros_like(rows)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD."""
        turned = grad * state["last"]
        factor = torch.ones_like(turned).masked_fill_(turned > 0, self.grow).masked_fill_(turned < 0, self.shrink)
        length = state["length"].mul_(factor).clamp_(self.shortest, self.longest)
        used = grad.masked_fill(turned < 0, 0)
        rows.addcmul_(used.sign() * length, over(rate, self.learning_rate), value=-1)
        state["last"].copy_(used)
