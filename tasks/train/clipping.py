"""Gradient clipping, on all gradients of a step together: gathered rows and dense parameters, whatever their rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class NoClipping:
    """Gradients as they are."""

    __pydantic_config__ = FORM
    name: Literal["none"] = "none"

    def clip_(self, grads: Sequence[Tensor]) -> None:
        """Does nothing."""


@dataclass(frozen=True, kw_only=True)
class ClipByNorm:
    """Scales the gradient of the whole step: grad · min(1, largest / ‖grad‖).

    References:
        Pascanu, Mikolov, Bengio. On the difficulty of training recurrent neural networks. ICML 2013, algorithm 1.
        https://arxiv.org/abs/1211.5063
    """

    __pydantic_config__ = FORM
    name: Literal["by_norm"] = "by_norm"
    largest_norm: float = field(
        default=1.0, metadata={"description": "Largest Euclidean norm of a step's gradient", "gt": 0}
    )

    def clip_(self, grads: Sequence[Tensor]) -> None:
        """Scales all gradients by one factor, in place.

        Args:
            grads: Finite, of any shapes, on one device.
        """
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(grad) for grad in grads]))
        factor = (self.largest_norm / norm).clamp(max=1.0)  # a norm of zero gives infinity, and that gives one
        for grad in grads:
            grad.mul_(factor)


@dataclass(frozen=True, kw_only=True)
class ClipByValue:
    """Clamps each coordinate to [−largest, largest]."""

    __pydantic_config__ = FORM
    name: Literal["by_value"] = "by_value"
    largest_value: float = field(
        default=0.1, metadata={"description": "Largest absolute value of a coordinate of the gradient", "gt": 0}
    )

    def clip_(self, grads: Sequence[Tensor]) -> None:
        """Clamps all gradients in place."""
        for grad in grads:
            grad.clamp_(-self.largest_value, self.largest_value)


Clipping = NoClipping | ClipByNorm | ClipByValue
