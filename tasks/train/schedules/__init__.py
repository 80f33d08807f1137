"""How the learning rate changes while training goes on: the family of schedules.

A schedule gives a factor on the rule's ``learning_rate`` from the share of training that is done, so that it does not
depend on how many titles or epochs there are. Warm-up goes with every schedule: see ``warmed``.
"""

from tasks.train.schedules.constant import Constant
from tasks.train.schedules.cosine import Cosine
from tasks.train.schedules.linear import Linear
from tasks.train.schedules.step import Step

__all__ = ["Constant", "Cosine", "Linear", "Schedule", "Step", "warmed"]

Schedule = Constant | Linear | Step | Cosine


def warmed(schedule: Schedule, done: float, after: float, warm_up: float) -> float:
    """The schedule's factor, rising from zero in a straight line over the first share of training.

    Args:
        schedule: What holds after the warm-up, and below it.
        done: Share of training done before this step, in [0, 1).
        after: The same after this step, so that the first step is not one of length zero.
        warm_up: Share of training that warms up; 0 is none.
    """
    return schedule.factor(done) * (min(1.0, after / warm_up) if warm_up else 1.0)
