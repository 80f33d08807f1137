"""How a row moves, given its gradient and its state: the family of rules.

A rule is written once and serves every table: it sees gathered rows, never where they came from. Semantics are lazy: a
row that a step does not touch gets no decay and no momentum in that step (this is not dense Adam); ``step`` is global.

The law of the family (tests/contracts/test_rules.py): with every row touched, equal to dense ``torch.optim``; with
sparse touches, equal to a float64 loop; rows of weight w move exactly w times as far as rows of weight one.
"""

from tasks.train.rules.adagrad import Adagrad
from tasks.train.rules.adam import Adam
from tasks.train.rules.rowwise_adagrad import RowwiseAdagrad
from tasks.train.rules.sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "RowwiseAdagrad", "Rule"]

Rule = SGD | RowwiseAdagrad | Adagrad | Adam  # smaller sets of fields first: tests/contracts/test_form.py
