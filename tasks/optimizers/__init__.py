"""Optimizers: how a row (gathered, offloaded or dense) is updated from its gradient and its state. Lazily: a
row that a step does not touch keeps its value and state, where dense Adam would go on moving it.
tests/contracts/test_optimizers.py holds that each equals torch.optim where every row is touched and a float64
loop where touches are sparse, and steps w times as far for a row of weight w.
"""

from tasks.optimizers.adam import Adam, Adamax, AdamW, AMSGrad, NAdam
from tasks.optimizers.adaptive import SMORMS3, Adadelta, Adagrad, RMSprop, RowwiseAdagrad, Rprop
from tasks.optimizers.sgd import ASGD, SGD, Momentum, Nesterov

_SGDs = SGD | Nesterov | Momentum | ASGD
_Adagrads = RowwiseAdagrad | Adagrad | SMORMS3 | Adadelta | RMSprop | Rprop
Optimizer = _SGDs | _Adagrads | Adam | AMSGrad | AdamW | Adamax | NAdam
