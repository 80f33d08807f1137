"""Averaged stochastic gradient descent: η = lr · weight / (1 + λ · lr · (t − 1))^power;  rows = (1 − λη) · rows − η · grad.

From the touch after ``average_from`` on, ``average`` is the mean of the rows since; before it, the rows themselves. The rows serve,
as torch.optim.ASGD's parameters do; the average is in the state for whoever wants it. The decay uses the rule's own
learning rate, so that a weight scales the whole step.

References:
    Polyak, Juditsky. Acceleration of stochastic approximation by averaging. SIAM J. Control and Optimization 30 (1992).
    Schedule: Bottou. Stochastic Gradient Descent Tricks. 2012, section 5. Order of operations as in torch.optim.ASGD.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps, over


@dataclass(frozen=True, kw_only=True)
class ASGD:
    """A running average a coordinate."""

    __pydantic_config__ = FORM
    name: Literal["asgd"] = "asgd"
    learning_rate: float = field(default=500.0, metadata={"description": "Step at the start of training", "gt": 0})
    shrinkage: float = field(default=1e-4, metadata={"description": "λ: how much a step pulls a row to zero, and how fast steps grow shorter", "ge": 0})
    power: float = field(default=0.75, metadata={"description": "How fast steps grow shorter", "ge": 0, "le": 1})
    average_from: float = field(default=1e6, metadata={"description": "Step after which rows are averaged", "ge": 0})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """The average, shape of the rows: at first the rows."""
        return {"average": rows.clone()}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD, ``step`` counts from 1."""
        past = step - 1
        eta = over(rate, (1 + self.shrinkage * self.learning_rate * past) ** self.power)
        rows.mul_((1 - self.shrinkage * eta.double()).to(rows.dtype)).addcmul_(grad, eta, value=-1)
        since = (past - self.average_from).clamp(min=1) if isinstance(past, Tensor) else max(1.0, past - self.average_from)
        state["average"].lerp_(rows, 1 / since)
