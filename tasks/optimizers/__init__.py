"""Optimizers: update rows (gathered, offloaded or dense) from their gradients and state.

Updates are lazy: a row that a step does not touch keeps its value and state, unlike with dense Adam.
tests/contracts/test_optimizers.py checks that each optimizer equals torch.optim if all rows are touched and a
float64 loop if touches are sparse, and that a row of weight w moves w times as far.
"""

from tasks.optimizers.adam import Adam, Adamax, AdamW, AMSGrad, NAdam
from tasks.optimizers.adaptive import SMORMS3, Adadelta, Adagrad, RMSprop, RowwiseAdagrad, Rprop
from tasks.optimizers.sgd import ASGD, SGD, Momentum, Nesterov

_SGDs = SGD | Nesterov | Momentum | ASGD
_Adagrads = RowwiseAdagrad | Adagrad | SMORMS3 | Adadelta | RMSprop | Rprop
Optimizer = _SGDs | _Adagrads | Adam | AMSGrad | AdamW | Adamax | NAdam
