"""What sets a rule's rate and momentum while training goes on: the family of tuners.

A tuner sees the whole gradient of a step, all parts that move under the main rule together. What it must remember of a
row is in the table with the rule's state; what it remembers of the whole is ``memory``, float64 tensors that the optimizer
holds and a checkpoint keeps.
"""

from tasks.train.tuners.as_set import AsSet
from tasks.train.tuners.yellowfin import YellowFin

__all__ = ["AsSet", "Tuner", "YellowFin"]

Tuner = AsSet | YellowFin
