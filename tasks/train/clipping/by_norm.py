"""The whole gradient is shortened to a length: grad · min(1, largest / ‖grad‖), one norm over all of the step.

References:
    Pascanu, Mikolov, Bengio. On the difficulty of training recurrent neural networks. ICML 2013, algorithm 1.
    https://arxiv.org/abs/1211.5063
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class ClipByNorm:
    """Keeps the direction."""

    __pydantic_config__ = FORM
    name: Literal["by_norm"] = "by_norm"
    largest_norm: float = field(default=1.0, metadata={"description": "Longest Euclidean length of a step's whole gradient", "gt": 0})

    def clip_(self, grads: Sequence[Tensor]) -> None:
        """Shortens all gradients by one factor, in place.

        Args:
            grads: Finite, of any shapes, on one device.
        """
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(grad) for grad in grads]))
        factor = (self.largest_norm / norm).clamp(max=1.0)  # a norm of zero gives infinity, and that gives one
        for grad in grads:
            grad.mul_(factor)
