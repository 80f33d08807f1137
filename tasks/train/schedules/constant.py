"""The same learning rate from the first step to the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class Constant:
    """No change."""

    __pydantic_config__ = FORM
    name: Literal["constant"] = "constant"

    def factor(self, done: float) -> float:
        """One, whatever share of training is done."""
        return 1.0
