"""A straight line from one to ``last``: 1 − (1 − last) · done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class Linear:
    """The straight line to zero that fastText and StarSpace train with."""

    __pydantic_config__ = FORM
    name: Literal["linear"] = "linear"
    last: float = field(default=0.0, metadata={"description": "Factor at the end of training", "ge": 0, "le": 1})

    def factor(self, done: float) -> float:
        """Factor on the learning rate when a share ``done`` of training, in [0, 1), is over."""
        return 1 - (1 - self.last) * done
