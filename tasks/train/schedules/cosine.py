"""Half a cosine from one to ``lowest``, once or several times over (warm restarts).

References:
    Loshchilov, Hutter. SGDR: Stochastic Gradient Descent with Warm Restarts. ICLR 2017, equation 5, cycles of equal length.
    https://arxiv.org/abs/1608.03983
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class Cosine:
    """Slow at both ends, fast in between."""

    __pydantic_config__ = FORM
    name: Literal["cosine"] = "cosine"
    lowest: float = field(default=0.0, metadata={"description": "Factor at the end of each cycle", "ge": 0, "le": 1})
    cycles: int = field(default=1, metadata={"description": "How often the rate starts again from the top", "ge": 1})

    def factor(self, done: float) -> float:
        """Factor on the learning rate when a share ``done`` of training, in [0, 1), is over."""
        return self.lowest + (1 - self.lowest) * (1 + math.cos(math.pi * (done * self.cycles % 1))) / 2
