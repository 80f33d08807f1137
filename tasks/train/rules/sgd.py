"""Stochastic gradient descent, with momentum and with averaging.

Order of operations as in torch.optim.SGD and torch.optim.ASGD, so that dense runs agree to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps, over


@dataclass(frozen=True, kw_only=True)
class SGD:
    """Stochastic gradient descent: rows -= lr · weight · grad."""

    __pydantic_config__ = FORM
    name: Literal["sgd"] = "sgd"
    learning_rate: float = field(default=500.0, metadata={"description": "Step at the start of training", "gt": 0})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """No state."""
        return {}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows in place.

        Args:
            rows: (unique, dim).
            grad: (unique, dim).
            state: Unused.
            rate: (unique, 1): learning rate of this step times the rows' weights.
            step: Unused.
        """
        rows.addcmul_(grad, rate, value=-1)


@dataclass(frozen=True, kw_only=True)
class Momentum:
    """Momentum (heavy ball): velocity = momentum · velocity + (1 − dampening) · grad; rows -= lr · weight · velocity.

    The first gradient of a row is not dampened, as in torch.optim.SGD; first is a row whose velocity is zero.

    References:
        Polyak. Some methods of speeding up the convergence of iteration methods. USSR Computational Mathematics and Mathematical
        Physics 4 (1964). Order of operations as in torch.optim.SGD, so that dense runs agree to the bit.
    """

    __pydantic_config__ = FORM
    name: Literal["momentum"] = "momentum"
    learning_rate: float = field(default=150.0, metadata={"description": "Step at the start of training", "gt": 0})
    momentum: float = field(default=0.9, metadata={"description": "Share of the velocity that is kept", "ge": 0, "lt": 1})
    dampening: float = field(default=0.0, metadata={"description": "Share of the gradient that is left out of the velocity", "ge": 0, "lt": 1})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Velocity, shape of the rows, zero."""
        return {"velocity": torch.zeros_like(rows)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD."""
        velocity = state["velocity"]
        first = ~velocity.any(1, keepdim=True) if self.dampening else None
        velocity.mul_(self.momentum).add_(grad, alpha=1 - self.dampening)
        if first is not None:
            velocity.copy_(torch.where(first, grad, velocity))
        rows.addcmul_(velocity, rate, value=-1)


@dataclass(frozen=True, kw_only=True)
class Nesterov:
    """Nesterov's momentum: velocity = momentum · velocity + grad; rows -= lr · weight · (grad + momentum · velocity).

    References:
        Sutskever, Martens, Dahl, Hinton. On the importance of initialization and momentum in deep learning. ICML 2013, section 2.
        Order of operations as in torch.optim.SGD(nesterov=True), so that dense runs agree to the bit.
    """

    __pydantic_config__ = FORM
    name: Literal["nesterov"] = "nesterov"
    learning_rate: float = field(default=150.0, metadata={"description": "Step at the start of training", "gt": 0})
    momentum: float = field(default=0.9, metadata={"description": "Share of the velocity that is kept", "gt": 0, "lt": 1})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Velocity, shape of the rows, zero."""
        return {"velocity": torch.zeros_like(rows)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD."""
        velocity = state["velocity"].mul_(self.momentum).add_(grad)
        rows.addcmul_(grad.add(velocity, alpha=self.momentum), rate, value=-1)


@dataclass(frozen=True, kw_only=True)
class ASGD:
    """Averaged stochastic gradient descent: η = lr · weight / (1 + λ · lr · (t − 1))^power;  rows = (1 − λη) · rows − η · grad.

    From the touch after ``average_from`` on, ``average`` is the mean of the rows since; before it, the rows themselves. The rows serve,
    as torch.optim.ASGD's parameters do; the average is in the state for whoever wants it. The decay uses the rule's own
    learning rate, so that a weight scales the whole step.

    References:
        Polyak, Juditsky. Acceleration of stochastic approximation by averaging. SIAM J. Control and Optimization 30 (1992).
        Schedule: Bottou. Stochastic Gradient Descent Tricks. 2012, section 5. Order of operations as in torch.optim.ASGD.
    """

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
