"""Every rule as a plain loop over one row in float64, written from the papers' formulas: (rule, row, grad, memory, rate, step) -> new row.

``rate`` is learning rate times weight, ``memory`` a dict that begins empty, ``step`` counts from 1.
"""

from __future__ import annotations

import math

import numpy as np

from tasks.train.rules import ASGD, SGD, SMORMS3, Adadelta, Adagrad, Adam, Adamax, AdamW, AMSGrad, Momentum, NAdam, Nesterov, RMSprop, RowwiseAdagrad, Rprop


def sgd(rule, row, grad, memory, rate, step):
    return row - rate * grad


def momentum(rule, row, grad, memory, rate, step):
    memory["v"] = rule.momentum * memory["v"] + (1 - rule.dampening) * grad if "v" in memory else grad
    return row - rate * memory["v"]


def nesterov(rule, row, grad, memory, rate, step):
    memory["v"] = rule.momentum * memory.get("v", 0) + grad
    return row - rate * (grad + rule.momentum * memory["v"])


def adagrad(rule, row, grad, memory, rate, step):
    memory["sum"] = memory.get("sum", rule.initial_sum) + grad**2
    return row - rate * grad / (np.sqrt(memory["sum"]) + rule.epsilon)


def rowwise_adagrad(rule, row, grad, memory, rate, step):
    memory["sum"] = memory.get("sum", 0) + float(np.mean(grad**2))
    return row - rate * grad / (math.sqrt(memory["sum"]) + rule.epsilon)


def adadelta(rule, row, grad, memory, rate, step):
    squares = memory["squares"] = rule.decay * memory.get("squares", 0) + (1 - rule.decay) * grad**2
    delta = np.sqrt(memory.get("moves", 0) + rule.epsilon) / np.sqrt(squares + rule.epsilon) * grad
    memory["moves"] = rule.decay * memory.get("moves", 0) + (1 - rule.decay) * delta**2
    return row - rate * delta


def rmsprop(rule, row, grad, memory, rate, step):
    variance = memory["squares"] = rule.decay * memory.get("squares", 0) + (1 - rule.decay) * grad**2
    if rule.centred:
        memory["mean"] = rule.decay * memory.get("mean", 0) + (1 - rule.decay) * grad
        variance = variance - memory["mean"] ** 2
    memory["v"] = rule.momentum * memory.get("v", 0) + grad / (np.sqrt(variance) + rule.epsilon)
    return row - rate * memory["v"]


def rprop(rule, row, grad, memory, rate, step):
    lengths, last = memory.setdefault("lengths", [rule.learning_rate] * len(row)), memory.setdefault("last", [0.0] * len(row))
    row = row.copy()
    for place, slope in enumerate(grad):
        if slope * last[place] > 0:
            lengths[place] = min(lengths[place] * rule.grow, rule.longest)
        elif slope * last[place] < 0:
            lengths[place] = max(lengths[place] * rule.shrink, rule.shortest)
            slope = 0.0
        row[place] -= rate / rule.learning_rate * lengths[place] * np.sign(slope)
        last[place] = slope
    return row


def asgd(rule, row, grad, memory, rate, step):
    length = rate / (1 + rule.shrinkage * rule.learning_rate * (step - 1)) ** rule.power
    row = (1 - rule.shrinkage * length) * row - length * grad
    since = max(1.0, step - 1 - rule.average_from)
    memory["average"] = memory.get("average", 0) + (row - memory.get("average", 0)) / since
    return row


def adam(rule, row, grad, memory, rate, step):
    first, second = _moments(rule, grad, memory)
    return row - rate * first / (1 - rule.beta1**step) / (np.sqrt(second / (1 - rule.beta2**step)) + rule.epsilon)


def amsgrad(rule, row, grad, memory, rate, step):
    first, second = _moments(rule, grad, memory)
    largest = memory["largest"] = np.maximum(memory.get("largest", rule.initial_largest), second)
    return row - rate * first / (1 - rule.beta1**step) / (np.sqrt(largest / (1 - rule.beta2**step)) + rule.epsilon)


def adamw(rule, row, grad, memory, rate, step):
    return adam(rule, row - rate * rule.weight_decay * row, grad, memory, rate, step)


def adamax(rule, row, grad, memory, rate, step):
    memory["first"] = rule.beta1 * memory.get("first", 0) + (1 - rule.beta1) * grad
    memory["largest"] = np.maximum(rule.maximum_decay * memory.get("largest", 0), np.abs(grad) + rule.epsilon)
    return row - rate / (1 - rule.beta1**step) * memory["first"] / memory["largest"]


def nadam(rule, row, grad, memory, rate, step):
    first, second = _moments(rule, grad, memory)
    momenta = [rule.beta1 * (1 - 0.5 * 0.96 ** (number * rule.momentum_decay)) for number in range(1, step + 2)]
    ahead = momenta[-1] * first / (1 - math.prod(momenta)) + (1 - momenta[-2]) * grad / (1 - math.prod(momenta[:-1]))
    return row - rate * ahead / (np.sqrt(second / (1 - rule.beta2**step)) + rule.epsilon)


def smorms3(rule, row, grad, memory, rate, step):
    past, mean, squares = memory.get("all", (rule.initial_memory, 0.0, 0.0))
    share = 1 / (past + 1)
    mean, squares = (1 - share) * mean + share * grad, (1 - share) * squares + share * grad**2
    agreement = mean**2 / (squares + rule.epsilon)
    memory["all"] = 1 + past * (1 - agreement), mean, squares
    return row - rate / rule.learning_rate * grad * np.minimum(rule.learning_rate, agreement) / (np.sqrt(squares) + rule.epsilon)


def _moments(rule, grad, memory):
    memory["first"] = rule.beta1 * memory.get("first", 0) + (1 - rule.beta1) * grad
    memory["second"] = rule.beta2 * memory.get("second", 0) + (1 - rule.beta2) * grad**2
    return memory["first"], memory["second"]


REFERENCES = {
    SGD: sgd, Momentum: momentum, Nesterov: nesterov, Adagrad: adagrad, RowwiseAdagrad: rowwise_adagrad, Adadelta: adadelta, RMSprop: rmsprop, Rprop: rprop,
    ASGD: asgd, Adam: adam, AMSGrad: amsgrad, AdamW: adamw, Adamax: adamax, NAdam: nadam, SMORMS3: smorms3,
}  # fmt: skip
