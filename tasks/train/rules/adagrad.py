"""Adagrad and its relatives: steps divided by the size of past gradients.

Order of operations as in torch.optim, so that dense runs agree to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps


@dataclass(frozen=True, kw_only=True)
class Adagrad:
    """Adagrad, an accumulator a coordinate: sum += grad²; rows -= lr · weight · grad / (√sum + ε).

    References:
        Duchi, Hazan, Singer. Adaptive Subgradient Methods for Online Learning and Stochastic Optimization. JMLR 12 (2011),
        figure 1 (diagonal form). Order of operations as in torch.optim.Adagrad, so that dense runs agree to the bit.
    """

    __pydantic_config__ = FORM
    name: Literal["adagrad"] = "adagrad"
    learning_rate: float = field(default=0.05, metadata={"description": "Step at the start of training", "gt": 0})
    epsilon: float = field(default=1e-10, metadata={"description": "Keeps the first division finite", "gt": 0})
    initial_sum: float = field(default=0.0, metadata={"description": "Accumulator before the first step; above 0 the first steps are shorter", "ge": 0})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Accumulator, shape of the rows, at its start."""
        return {"sum": torch.full_like(rows, self.initial_sum)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD."""
        total = state["sum"].addcmul_(grad, grad, value=1.0)
        rows.addcdiv_(grad * -rate, total.sqrt().add_(self.epsilon))


@dataclass(frozen=True, kw_only=True)
class RowwiseAdagrad:
    """Row-wise Adagrad, one accumulator a row: sum += mean(grad²); rows -= lr · weight · grad / (√sum + ε).

    A quarter of Adam's memory traffic at 128 dimensions, and the step keeps the direction of the gradient. The form that
    StarSpace and PyTorch-BigGraph train with.

    References:
        Lerer et al. PyTorch-BigGraph: A Large-scale Graph Embedding System. SysML 2019, section 3.1. https://arxiv.org/abs/1903.12287
    """

    __pydantic_config__ = FORM
    name: Literal["rowwise_adagrad"] = "rowwise_adagrad"
    learning_rate: float = field(default=0.07, metadata={"description": "Step at the start of training", "gt": 0})
    epsilon: float = field(default=1e-10, metadata={"description": "Keeps the first division finite", "gt": 0})

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Accumulator, shape (tokens, 1), zero."""
        return {"sum": torch.zeros(len(rows), 1, dtype=rows.dtype, device=rows.device)}

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: Steps) -> None:
        """Moves the rows and their state in place; shapes as in SGD."""
        total = state["sum"].addcmul_(norm := torch.linalg.vector_norm(grad, dim=1, keepdim=True), norm, value=1.0 / grad.shape[1])
        rows.addcmul_(grad, rate / total.sqrt().add_(self.epsilon), value=-1.0)


@dataclass(frozen=True, kw_only=True)
class Adadelta:
    """Adadelta: steps in units of the rows' own recent steps.

        squares = ρ · squares + (1 − ρ) · grad²;  δ = √(steps + ε) / √(squares + ε) · grad
        steps = ρ · steps + (1 − ρ) · δ²;  rows -= lr · weight · δ

    The recorded steps are δ, without rate and weight, so that a weight stays out of the state.

    References:
        Zeiler. ADADELTA: An Adaptive Learning Rate Method. 2012, algorithm 1. https://arxiv.org/abs/1212.5701
        Order of operations as in torch.optim.Adadelta, so that dense runs agree to the bit.
    """

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


@dataclass(frozen=True, kw_only=True)
class RMSprop:
    """RMSprop, centred or not, with momentum or not.

        squares = α · squares + (1 − α) · grad²;  centred: mean = α · mean + (1 − α) · grad, squares − mean² in place of squares
        rows -= lr · weight · grad / (√squares + ε), or of the velocity that such steps feed

    References:
        Hinton. Neural Networks for Machine Learning, lecture 6e (2012). Centred and with momentum: Graves. Generating Sequences
        With Recurrent Neural Networks. 2013, equations 38 to 41. https://arxiv.org/abs/1308.0850
        Order of operations as in torch.optim.RMSprop, so that dense runs agree to the bit.
    """

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
