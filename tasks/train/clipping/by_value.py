"""Each coordinate of the gradient is brought into [−largest, largest]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class ClipByValue:
    """Changes the direction; knows of no other coordinate."""

    __pydantic_config__ = FORM
    name: Literal["by_value"] = "by_value"
    largest_value: float = field(default=0.1, metadata={"description": "Largest size of one coordinate of the gradient", "gt": 0})

    def clip_(self, grads: Sequence[Tensor]) -> None:
        """Clamps all gradients in place."""
        for grad in grads:
            grad.clamp_(-self.largest_value, self.largest_value)
