"""Optimizers, which update the rows of embedding tables and dense parameters by gradients.

Updates are lazy: unlike with torch.optim.Adam, a row that does not occur in a step (an untouched row) keeps
its value and state. tests/contracts/test_optimizers.py checks that each optimizer equals torch.optim if all
rows are touched, and a float64 loop if only some are, and that a row of weight w moves w times as far.
"""

from tasks.optimizers.adam import Adam, Adamax, AdamW, AMSGrad, NAdam
from tasks.optimizers.adaptive import SMORMS3, Adadelta, Adagrad, RMSprop, RowwiseAdagrad, Rprop
from tasks.optimizers.sgd import ASGD, SGD, Momentum, Nesterov

_SGDs = SGD | Nesterov | Momentum | ASGD
_Adagrads = RowwiseAdagrad | Adagrad | SMORMS3 | Adadelta | RMSprop | Rprop
Optimizer = _SGDs | _Adagrads | Adam | AMSGrad | AdamW | Adamax | NAdam
