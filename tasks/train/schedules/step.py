"""Stairs: the rate is multiplied by ``drop`` each time another share ``every`` of training is done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class Step:
    """Equal rates in between, a fall now and then."""

    __pydantic_config__ = FORM
    name: Literal["step"] = "step"
    every: float = field(default=0.25, metadata={"description": "Share of training between two falls", "gt": 0, "le": 1})
    drop: float = field(default=0.3, metadata={"description": "What a fall multiplies the rate by", "gt": 0, "le": 1})

    def factor(self, done: float) -> float:
        """Factor on the learning rate when a share ``done`` of training, in [0, 1), is over."""
        return self.drop ** int(done / self.every + 1e-9)  # 0.3 / 0.1 is 2.9999999999999996
