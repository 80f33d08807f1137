"""Implements optimizers that scale steps by past gradients, in torch.optim's order of operations."""

from typing import Literal

import torch
from torch import Tensor

from tasks.form import configurable, setting
from tasks.optimizers.base import RowOptimizer, State, Steps, divide_rate


@configurable
class Adagrad(RowOptimizer):
    """Optimizer Adagrad: one accumulator per coordinate (Duchi, Hazan, Singer. JMLR 12, 2011, figure 1)."""

    STATE = {"sum": "initial_accumulator_value"}
    name: Literal["adagrad"] = "adagrad"
    learning_rate: float = setting(0.05, "Learning rate at the start", gt=0)
    epsilon: float = setting(1e-10, "Added to the divisor to keep it above 0", gt=0)
    initial_accumulator_value: float = setting(0.0, "Initial sum; above 0, the first steps are shorter", ge=0)

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Updates by ``sum += grad²``, ``rows -= lr · weight · grad / (√sum + ε)``."""
        total = state["sum"].addcmul_(grad, grad, value=1.0)
        rows.addcdiv_(grad * -rate, total.sqrt().add_(self.epsilon))


@configurable
class RowwiseAdagrad(RowOptimizer):
    """Optimizer: row-wise Adagrad, with one accumulator per row, as in StarSpace and PyTorch-BigGraph.

    A step has the direction of the gradient. It reads and writes a row and one number; Adam reads and writes
    a row and two moments, three times as many bytes.

    References: Lerer et al. PyTorch-BigGraph. SysML 2019, section 3.1. https://arxiv.org/abs/1903.12287
    """

    name: Literal["rowwise_adagrad"] = "rowwise_adagrad"
    learning_rate: float = setting(0.07, "Learning rate at the start", gt=0)
    epsilon: float = setting(1e-10, "Added to the divisor to keep it above 0", gt=0)

    def initial_state(self, rows: Tensor) -> State:
        """Returns the initial accumulator of each row, (tokens, 1)."""
        return {"sum": rows.new_zeros(len(rows), 1)}

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Updates by ``sum += mean(grad²)``, ``rows -= lr · weight · grad / (√sum + ε)``."""
        norm = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
        total = state["sum"].addcmul_(norm, norm, value=1.0 / grad.shape[1])
        rows.addcmul_(grad, rate / total.sqrt().add_(self.epsilon), value=-1.0)


@configurable
class Adadelta(RowOptimizer):
    """Optimizer Adadelta: scales a step by the size of recent steps, before learning rate and weight.

    References: Zeiler. 2012, algorithm 1. https://arxiv.org/abs/1212.5701
    """

    STATE = {"squares": 0.0, "moves": 0.0}
    name: Literal["adadelta"] = "adadelta"
    learning_rate: float = setting(1000.0, "Learning rate at the start", gt=0)
    rho: float = setting(0.9, "Decay of both averages", ge=0, lt=1)
    epsilon: float = setting(1e-6, "Added to the divisor to keep it above 0", gt=0)

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Updates by ``rows -= lr · weight · δ``, ``δ = √(moves + ε) / √(squares + ε) · grad``.

        ``moves`` is the exponential average of δ², and ``squares`` that of grad².
        """
        squares = state["squares"].mul_(self.rho).addcmul_(grad, grad, value=1 - self.rho)
        delta = state["moves"].add(self.epsilon).sqrt_().div_(squares.add(self.epsilon).sqrt_()).mul_(grad)
        state["moves"].mul_(self.rho).addcmul_(delta, delta, value=1 - self.rho)
        rows.addcmul_(delta, rate, value=-1)


@configurable
class RMSprop(RowOptimizer):
    """Optimizer RMSprop (Hinton. Neural Networks for Machine Learning, lecture 6e, 2012).

    Two options are from Graves (2013, equations 38 to 41. https://arxiv.org/abs/1308.0850): ``centered``
    subtracts mean² from the squares, with ε inside the root as in equation 40, and ``momentum`` accumulates
    the steps in a velocity. We differ from torch.optim, which adds ε after the root and gives NaN if rounding
    makes the variance of a constant gradient negative.
    """

    name: Literal["rmsprop"] = "rmsprop"
    learning_rate: float = setting(0.01, "Learning rate at the start", gt=0)
    alpha: float = setting(0.99, "Decay of the averages", ge=0, lt=1)
    epsilon: float = setting(1e-8, "Added to the divisor to keep it above 0", gt=0)
    momentum: float = setting(0.0, "Fraction of the velocity that is kept; 0: no velocity", ge=0, lt=1)
    centered: bool = setting(False, "Divide by the standard deviation of the gradient instead of its RMS")

    def initial_state(self, rows: Tensor) -> State:
        """Returns the state that the options require: zeros in the shape of ``rows``."""
        needed = {"squares": True, "mean": self.centered, "velocity": self.momentum}
        return {name: torch.zeros_like(rows) for name, used in needed.items() if used}

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Updates by ``rows -= lr · weight · grad / (√squares + ε)``.

        ``squares`` becomes α · squares + (1 − α) · grad². If centered, the divisor is √(squares − mean² + ε).
        """
        squares = state["squares"].mul_(self.alpha).addcmul_(grad, grad, value=1 - self.alpha)
        if self.centered:
            mean = state["mean"].lerp_(grad, 1 - self.alpha)
            variance = squares.addcmul(mean, mean, value=-1).clamp_(min=0)  # rounding may make it negative
            size = variance.add_(self.epsilon).sqrt_()
        else:
            size = squares.sqrt().add_(self.epsilon)
        if self.momentum:
            rows.addcmul_(state["velocity"].mul_(self.momentum).addcdiv_(grad, size), rate, value=-1)
        else:
            rows.addcdiv_(grad * -rate, size)


@configurable
class Rprop(RowOptimizer):
    """Optimizer Rprop: the step of a coordinate grows while the sign of its gradient remains, else shrinks.

    Rprop is meant for full-batch gradients. ``learning_rate`` is the initial step length; schedule and weight
    multiply the step but not the stored length.

    References: Riedmiller, Braun. ICNN 1993, without weight backtracking, as in torch.
    """

    STATE = {"length": "learning_rate", "last": 0.0}
    name: Literal["rprop"] = "rprop"
    learning_rate: float = setting(0.1, "Learning rate at the start", gt=0)
    etaminus: float = setting(0.5, "Factor on the step length if the sign changes", gt=0, lt=1)
    etaplus: float = setting(1.2, "Factor on the step length if the sign is unchanged", gt=1)
    step_size_min: float = setting(1e-6, "Lower bound of the step length", gt=0)
    step_size_max: float = setting(50.0, "Upper bound of the step length", gt=0)

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Updates by ``rows -= sign(grad) · length``; a coordinate whose sign changed skips one step."""
        turned = grad * state["last"]
        factor = torch.ones_like(turned).masked_fill_(turned > 0, self.etaplus)
        factor.masked_fill_(turned < 0, self.etaminus)
        length = state["length"].mul_(factor).clamp_(self.step_size_min, self.step_size_max)
        used = grad.masked_fill(turned < 0, 0)
        rows.addcmul_(used.sign() * length, divide_rate(rate, self.learning_rate), value=-1)
        state["last"].copy_(used)


@configurable
class SMORMS3(RowOptimizer):
    """Optimizer SMORMS3: adapts rate and averaging window of a coordinate to how much its gradients agree.

    ``learning_rate`` is the maximum rate, used at the start and wherever gradients agree; schedule and weight
    multiply the step. ε damps gradients near 1e-8. The window (``memory``) uses the unclamped agreement, as
    in Funk. RMSprop loses to SMORMS3: Beware the Epsilon! 2015.
    https://sifter.org/~simon/journal/20150420.html
    """

    STATE = {"memory": 1.0, "mean": 0.0, "squares": 0.0}
    name: Literal["smorms3"] = "smorms3"
    learning_rate: float = setting(0.05, "Learning rate at the start", gt=0)
    epsilon: float = setting(1e-16, "Added to the divisor to keep it above 0", gt=0)

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Updates by ``rows -= weight · grad · min(lr, agreed) / (√squares + ε)``.

        ``agreed`` is mean² / (squares + ε). In both averages, the newest gradient has weight 1 / (memory +
        1), and ``memory`` becomes 1 + memory · (1 − agreed).
        """
        memory, mean, squares = state["memory"], state["mean"], state["squares"]
        newest = 1 / (memory + 1)
        mean.lerp_(grad, newest)
        squares.lerp_(grad * grad, newest)
        agreed = mean * mean / (squares + self.epsilon)
        length = agreed.clamp(max=self.learning_rate).div_(squares.sqrt().add_(self.epsilon))
        rows.addcmul_(grad * length, divide_rate(rate, self.learning_rate), value=-1)
        memory.mul_(1 - agreed).add_(1)
