"""Learning-rate schedules, which map the completed fraction of training to a factor on the learning rate."""

import math
from typing import Literal

from tasks.form import configurable, setting


@configurable
class Constant:
    """Schedule: the learning rate is constant."""

    name: Literal["constant"] = "constant"

    def factor(self, fraction: float) -> float:
        """Returns 1 for every fraction of the training."""
        return 1.0


@configurable
class Linear:
    """Schedule: the factor falls linearly from 1 to ``end_factor``, as in fastText and StarSpace."""

    name: Literal["linear"] = "linear"
    end_factor: float = setting(0.0, "Factor on the learning rate at the end of training", ge=0, le=1)

    def factor(self, fraction: float) -> float:
        """Returns 1 − (1 − end_factor) · fraction."""
        return 1 - (1 - self.end_factor) * fraction


@configurable
class Step:
    """Schedule: multiplies the learning rate by ``gamma`` after each fraction ``step_size`` of training."""

    name: Literal["step"] = "step"
    step_size: float = setting(
        0.25, "Fraction of training between two reductions of the learning rate", gt=0, le=1
    )
    gamma: float = setting(0.3, "Factor on the learning rate at each reduction", gt=0, le=1)

    def factor(self, fraction: float) -> float:
        """Returns gamma^⌊fraction / step_size⌋."""
        return self.gamma ** int(fraction / self.step_size + 1e-9)  # 0.3 / 0.1 is 2.9999999999999996


@configurable
class Cosine:
    """Schedule: the factor falls from 1 to ``eta_min`` along a cosine, once or in several cycles.

    References: Loshchilov, Hutter. ICLR 2017, equation 5. https://arxiv.org/abs/1608.03983
    """

    name: Literal["cosine"] = "cosine"
    eta_min: float = setting(0.0, "Factor on the learning rate at the end of each cycle", ge=0, le=1)
    cycles: int = setting(1, "Number of cycles; each begins with factor 1", ge=1)

    def factor(self, fraction: float) -> float:
        """Returns eta_min + (1 − eta_min) · (1 + cos(π · position in the cycle)) / 2."""
        return self.eta_min + (1 - self.eta_min) * (1 + math.cos(math.pi * (fraction * self.cycles % 1))) / 2


Schedule = Constant | Linear | Step | Cosine


def warmed_up_factor(schedule: Schedule, fraction: float, fraction_after: float, warm_up: float) -> float:
    """Returns the factor of a schedule, multiplied by a linear warm-up from zero.

    Args:
        schedule: Schedule of the learning rate.
        fraction: Fraction of training that is complete before the step.
        fraction_after: Fraction of training that is complete after the step. The warm-up uses it, so that the
            factor of the first step is not zero.
        warm_up: Fraction of training in which the factor rises; 0: no warm-up.
    """
    return schedule.factor(fraction) * (min(1.0, fraction_after / warm_up) if warm_up else 1.0)
