"""Optimizers update the rows of embedding tables, and dense parameters, from their gradients.

Updates are lazy: a row that does not occur in a step keeps its value and its optimizer state. In contrast,
torch.optim.Adam moves a row by its momentum even if its gradient is zero. tests/contracts/test_optimizers.py
compares each optimizer with torch.optim in steps that contain all rows, and with a float64 loop in steps that
contain some rows. It also checks that a row with weight w moves w times as far.
"""

from tasks.optimizers.adam import Adam, Adamax, AdamW, AMSGrad, NAdam
from tasks.optimizers.adaptive import SMORMS3, Adadelta, Adagrad, RMSprop, RowwiseAdagrad, Rprop
from tasks.optimizers.sgd import ASGD, SGD, Momentum, Nesterov

_GradientRules = SGD | Nesterov | Momentum | ASGD
_AdaptiveRules = RowwiseAdagrad | Adagrad | SMORMS3 | Adadelta | RMSprop | Rprop
Optimizer = _GradientRules | _AdaptiveRules | Adam | AMSGrad | AdamW | Adamax | NAdam
