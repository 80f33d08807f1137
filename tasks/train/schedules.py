"""Learning-rate schedules: a factor on the rule's ``learning_rate`` by the share of training that is done.

A schedule does not depend on the number of titles or epochs. Warm-up combines with every schedule: see ``warmed``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class Constant:
    """The same learning rate from the first step to the last."""

    __pydantic_config__ = FORM
    name: Literal["constant"] = "constant"

    def factor(self, done: float) -> float:
        """One."""
        return 1.0


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Linear decay from one to ``last``, as in fastText and StarSpace: 1 − (1 − last) · done."""

    __pydantic_config__ = FORM
    name: Literal["linear"] = "linear"
    last: float = field(default=0.0, metadata={"description": "Factor at the end of training", "ge": 0, "le": 1})

    def factor(self, done: float) -> float:
        """Factor on the learning rate when a share ``done`` of training, in [0, 1), is over."""
        return 1 - (1 - self.last) * done


@dataclass(frozen=True, kw_only=True)
class Step:
    """Step decay: the rate is multiplied by ``drop`` after each share ``every`` of training."""

    __pydantic_config__ = FORM
    name: Literal["step"] = "step"
    every: float = field(
        default=0.25, metadata={"description": "Share of training between two drops", "gt": 0, "le": 1}
    )
    drop: float = field(
        default=0.3, metadata={"description": "Factor on the rate at each drop", "gt": 0, "le": 1}
    )

    def factor(self, done: float) -> float:
        """Factor on the learning rate when a share ``done`` of training, in [0, 1), is over."""
        return self.drop ** int(done / self.every + 1e-9)  # 0.3 / 0.1 is 2.9999999999999996


@dataclass(frozen=True, kw_only=True)
class Cosine:
    """Cosine annealing from one to ``lowest``, once or with warm restarts.

    References:
        Loshchilov, Hutter. SGDR: Stochastic Gradient Descent with Warm Restarts. ICLR 2017, equation 5, cycles of
        equal length. https://arxiv.org/abs/1608.03983
    """

    __pydantic_config__ = FORM
    name: Literal["cosine"] = "cosine"
    lowest: float = field(
        default=0.0, metadata={"description": "Factor at the end of each cycle", "ge": 0, "le": 1}
    )
    cycles: int = field(default=1, metadata={"description": "Number of cycles", "ge": 1})

    def factor(self, done: float) -> float:
        """Factor on the learning rate when a share ``done`` of training, in [0, 1), is over."""
        return self.lowest + (1 - self.lowest) * (1 + math.cos(math.pi * (done * self.cycles % 1))) / 2


Schedule = Constant | Linear | Step | Cosine


def warmed(schedule: Schedule, done: float, after: float, warm_up: float) -> float:
    """The schedule's factor with a linear warm-up from zero.

    Args:
        schedule: What holds after the warm-up, and below it.
        done: Share of training done before this step, in [0, 1).
        after: The same after this step, so that the first step is not one of length zero.
        warm_up: Share of training that warms up; 0 is none.
    """
    return schedule.factor(done) * (min(1.0, after / warm_up) if warm_up else 1.0)
