"""What rules derive from the number of the step: bias corrections, for one count or for a count of each row.

A rule keeps no count of its own: ``step`` says it, so that a row's state is all there is to store, move and restore.
"""

from __future__ import annotations

import torch
from torch import Tensor

Steps = int | Tensor
"""Steps so far, this one included: of all rows, or (unique, 1) of each."""


def bias(beta: float, step: Steps) -> float | Tensor:
    """1 − β^step: what an average with decay β that began at zero still lacks after that many steps.

    Returns:
        A number; for a count of each row float32 (unique, 1), computed in float64, since 1 − .999 loses four digits in float32.
    """
    if isinstance(step, Tensor):
        return (1 - torch.pow(beta, step.double())).float()
    return 1 - beta**step


def over(rate: Tensor, divisor: float | Tensor) -> Tensor:
    """The rate divided, rounded once: as exact as torch's own division of Python floats."""
    return (rate.double() / divisor).to(rate.dtype)


def times(rate: Tensor, factor: float | Tensor) -> Tensor:
    """The rate multiplied, rounded once."""
    return (rate.double() * factor).to(rate.dtype)
