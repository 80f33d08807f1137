"""How a row moves, given its gradient and its state: the family of rules.

A rule is written once and serves gathered rows, offloaded rows and dense tensors: it sees rows, never where they came
from. Its state is a dict of tensors with one row a row; what it needs to know of time follows from ``step``.

Semantics are lazy: a row that a step does not touch does not move in that step, keeps its moments and decays not. So
this is not dense Adam, whose moments of an untouched row fall and move it on. ``step`` counts all steps; where it stands
for each row's own touches (``train.per_row_steps``), the bias corrections of a rare row begin with its first touch.

The law of the family (tests/contracts/test_rules.py): with every row touched, equal to dense ``torch.optim``; with
sparse touches, equal to a float64 loop; a row of weight w makes a step w times as long. docs/rules.md is the page for users.
"""

from tasks.train.rules.adagrad import Adadelta, Adagrad, RMSprop, RowwiseAdagrad
from tasks.train.rules.adam import Adam, Adamax, AdamW, AMSGrad, NAdam
from tasks.train.rules.rprop import Rprop
from tasks.train.rules.sgd import ASGD, SGD, Momentum, Nesterov
from tasks.train.rules.smorms3 import SMORMS3

__all__ = [
    "ASGD", "SGD", "SMORMS3", "AMSGrad", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Momentum", "NAdam", "Nesterov", "RMSprop", "RowwiseAdagrad",
    "Rprop", "Rule",
]  # fmt: skip

# Smaller sets of fields first: tests/contracts/test_form.py.
Rule = SGD | RowwiseAdagrad | Nesterov | Momentum | Adagrad | SMORMS3 | Adadelta | RMSprop | Rprop | ASGD | Adam | AMSGrad | AdamW | Adamax | NAdam
