"""Every optimizer as a plain loop over one row in float64, written from the papers' formulas: (optimizer,
row, grad, memory, rate, step) -> new row.

``rate`` is learning rate times weight, ``memory`` a dict that begins empty, ``step`` counts from 1.
"""

import math

import numpy as np

from tasks.optimizers import (
    ASGD,
    SGD,
    SMORMS3,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    AMSGrad,
    Momentum,
    NAdam,
    Nesterov,
    RMSprop,
    RowwiseAdagrad,
    Rprop,
)


def sgd(optimizer, row, grad, memory, rate, step):
    return row - rate * grad


def momentum(optimizer, row, grad, memory, rate, step):
    memory["v"] = (
        optimizer.momentum * memory["v"] + (1 - optimizer.dampening) * grad if "v" in memory else grad
    )
    return row - rate * memory["v"]


def nesterov(optimizer, row, grad, memory, rate, step):
    memory["v"] = optimizer.momentum * memory.get("v", 0) + grad
    return row - rate * (grad + optimizer.momentum * memory["v"])


def adagrad(optimizer, row, grad, memory, rate, step):
    memory["sum"] = memory.get("sum", optimizer.initial_accumulator_value) + grad**2
    return row - rate * grad / (np.sqrt(memory["sum"]) + optimizer.epsilon)


def rowwise_adagrad(optimizer, row, grad, memory, rate, step):
    memory["sum"] = memory.get("sum", 0) + float(np.mean(grad**2))
    return row - rate * grad / (math.sqrt(memory["sum"]) + optimizer.epsilon)


def adadelta(optimizer, row, grad, memory, rate, step):
    squares = memory["squares"] = optimizer.rho * memory.get("squares", 0) + (1 - optimizer.rho) * grad**2
    delta = np.sqrt(memory.get("moves", 0) + optimizer.epsilon) / np.sqrt(squares + optimizer.epsilon) * grad
    memory["moves"] = optimizer.rho * memory.get("moves", 0) + (1 - optimizer.rho) * delta**2
    return row - rate * delta


def rmsprop(optimizer, row, grad, memory, rate, step):
    variance = memory["squares"] = (
        optimizer.alpha * memory.get("squares", 0) + (1 - optimizer.alpha) * grad**2
    )
    if optimizer.centered:
        memory["mean"] = optimizer.alpha * memory.get("mean", 0) + (1 - optimizer.alpha) * grad
        size = np.sqrt(variance - memory["mean"] ** 2 + optimizer.epsilon)
    else:
        size = np.sqrt(variance) + optimizer.epsilon
    memory["v"] = optimizer.momentum * memory.get("v", 0) + grad / size
    return row - rate * memory["v"]


def rprop(optimizer, row, grad, memory, rate, step):
    lengths, last = (
        memory.setdefault("lengths", [optimizer.learning_rate] * len(row)),
        memory.setdefault("last", [0.0] * len(row)),
    )
    row = row.copy()
    for place, slope in enumerate(grad):
        if slope * last[place] > 0:
            lengths[place] = min(lengths[place] * optimizer.etaplus, optimizer.step_size_max)
        elif slope * last[place] < 0:
            lengths[place] = max(lengths[place] * optimizer.etaminus, optimizer.step_size_min)
            slope = 0.0
        row[place] -= rate / optimizer.learning_rate * lengths[place] * np.sign(slope)
        last[place] = slope
    return row


def asgd(optimizer, row, grad, memory, rate, step):
    length = rate / (1 + optimizer.lambd * optimizer.learning_rate * (step - 1)) ** optimizer.alpha
    row = (1 - optimizer.lambd * length) * row - length * grad
    since = max(1.0, step - 1 - optimizer.t0)
    memory["average"] = memory.get("average", 0) + (row - memory.get("average", 0)) / since
    return row


def adam(optimizer, row, grad, memory, rate, step):
    first, second = _moments(optimizer, grad, memory)
    return row - rate * first / (1 - optimizer.beta1**step) / (
        np.sqrt(second / (1 - optimizer.beta2**step)) + optimizer.epsilon
    )


def amsgrad(optimizer, row, grad, memory, rate, step):
    first, second = _moments(optimizer, grad, memory)
    largest = memory["largest"] = np.maximum(memory.get("largest", 0), second)
    return row - rate * first / (1 - optimizer.beta1**step) / (
        np.sqrt(largest / (1 - optimizer.beta2**step)) + optimizer.epsilon
    )


def adamw(optimizer, row, grad, memory, rate, step):
    return adam(optimizer, row - rate * optimizer.weight_decay * row, grad, memory, rate, step)


def adamax(optimizer, row, grad, memory, rate, step):
    memory["first"] = optimizer.beta1 * memory.get("first", 0) + (1 - optimizer.beta1) * grad
    memory["largest"] = np.maximum(
        optimizer.beta2 * memory.get("largest", 0), np.abs(grad) + optimizer.epsilon
    )
    return row - rate / (1 - optimizer.beta1**step) * memory["first"] / memory["largest"]


def nadam(optimizer, row, grad, memory, rate, step):
    first, second = _moments(optimizer, grad, memory)
    momenta = [
        optimizer.beta1 * (1 - 0.5 * 0.96 ** (number * optimizer.momentum_decay))
        for number in range(1, step + 2)
    ]
    ahead = momenta[-1] * first / (1 - math.prod(momenta)) + (1 - momenta[-2]) * grad / (
        1 - math.prod(momenta[:-1])
    )
    return row - rate * ahead / (np.sqrt(second / (1 - optimizer.beta2**step)) + optimizer.epsilon)


def smorms3(optimizer, row, grad, memory, rate, step):
    past, mean, squares = memory.get("all", (1.0, 0.0, 0.0))
    share = 1 / (past + 1)
    mean, squares = (1 - share) * mean + share * grad, (1 - share) * squares + share * grad**2
    agreement = mean**2 / (squares + optimizer.epsilon)
    memory["all"] = 1 + past * (1 - agreement), mean, squares
    return row - rate / optimizer.learning_rate * grad * np.minimum(optimizer.learning_rate, agreement) / (
        np.sqrt(squares) + optimizer.epsilon
    )


def _moments(optimizer, grad, memory):
    memory["first"] = optimizer.beta1 * memory.get("first", 0) + (1 - optimizer.beta1) * grad
    memory["second"] = optimizer.beta2 * memory.get("second", 0) + (1 - optimizer.beta2) * grad**2
    return memory["first"], memory["second"]


REFERENCES = {
    **{SGD: sgd, Momentum: momentum, Nesterov: nesterov, ASGD: asgd},
    **{Adagrad: adagrad, RowwiseAdagrad: rowwise_adagrad, Adadelta: adadelta},
    **{RMSprop: rmsprop, Rprop: rprop, SMORMS3: smorms3},
    **{Adam: adam, AMSGrad: amsgrad, AdamW: adamw, Adamax: adamax, NAdam: nadam},
}
