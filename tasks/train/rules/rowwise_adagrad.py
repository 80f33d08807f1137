"""Row-wise Adagrad, one accumulator a row: sum += mean(grad²); rows -= lr · weight · grad / (√sum + ε).

A quarter of Adam's memory traffic at 128 dimensions, and the step keeps the direction of the gradient. The form that
StarSpace and PyTorch-BigGraph train with.

References:
    Lerer et al. PyTorch-BigGraph: A Large-scale Graph Embedding System. SysML 2019, section 3.1. https://arxiv.org/abs/1903.12287
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.rules.steps import Steps


@dataclass(frozen=True, kw_only=True)
class RowwiseAdagrad:
    """One accumulator a row."""

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
