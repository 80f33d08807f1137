"""Gradients as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class NoClipping:
    """Nothing is clipped."""

    __pydantic_config__ = FORM
    name: Literal["none"] = "none"

    def clip_(self, grads: Sequence[Tensor]) -> None:
        """Leaves the gradients as they are."""
