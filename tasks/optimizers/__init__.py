"""Optimizers update the rows of embedding tables, and dense parameters, from their gradients.

Updates are lazy: a row that does not occur in a step (an untouched row) keeps its value and its optimizer
state. torch.optim.Adam, in contrast, moves such a row by its momentum. tests/contracts/test_optimizers.py
compares each optimizer with torch.optim if all rows are touched, and with a float64 loop if some are not. It
also checks that a row with weight w moves w times as far.
"""

from tasks.optimizers.adam import Adam, Adamax, AdamW, AMSGrad, NAdam
from tasks.optimizers.adaptive import SMORMS3, Adadelta, Adagrad, RMSprop, RowwiseAdagrad, Rprop
from tasks.optimizers.sgd import ASGD, SGD, Momentum, Nesterov

_GradientRules = SGD | Nesterov | Momentum | ASGD
_AdaptiveRules = RowwiseAdagrad | Adagrad | SMORMS3 | Adadelta | RMSprop | Rprop
Optimizer = _GradientRules | _AdaptiveRules | Adam | AMSGrad | AdamW | Adamax | NAdam
