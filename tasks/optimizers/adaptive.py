"""Optimizers that scale the step of each coordinate by the past gradients of the coordinate.

The operations have the same order as in torch.optim, so that the rounding is the same.
"""

from typing import Literal

from storage.lazy import Tensor, torch
from tasks.form import configurable, setting
from tasks.optimizers.base import RowOptimizer, State, Steps, divide_rate


@configurable
class Adagrad(RowOptimizer):
    """Optimizer Adagrad: divides each coordinate of a gradient by the root of the sum of its past squares.

    References: Duchi, Hazan, Singer. JMLR 12, 2011, figure 1.
    """

    STATE = {"sum": "initial_accumulator_value"}  # name of a state: field with its initial value
    name: Literal["adagrad"] = "adagrad"
    learning_rate: float = setting(0.05, "Learning rate at the start of training", gt=0)
    epsilon: float = setting(1e-10, "Constant that is added to the divisor, so that it is not 0", gt=0)
    initial_accumulator_value: float = setting(
        0.0, "Initial sum of squares; a value above 0 shortens the first steps", ge=0
    )

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``sum += grad²``, ``rows -= lr · weight · grad / (√sum + ε)``."""
        squares = state["sum"].addcmul_(grad, grad, value=1.0)
        rows.addcdiv_(grad * -rate, squares.sqrt().add_(self.epsilon))


@configurable
class RowwiseAdagrad(RowOptimizer):
    """Optimizer: Adagrad with one sum of squares for each row, as in StarSpace and PyTorch-BigGraph.

    All coordinates of a row are divided by the same number, so a step has the direction of the gradient. The
    optimizer state of a row is one number, while Adam stores two numbers for each coordinate.

    References: Lerer et al. PyTorch-BigGraph. SysML 2019, section 3.1. https://arxiv.org/abs/1903.12287
    """

    name: Literal["rowwise_adagrad"] = "rowwise_adagrad"
    learning_rate: float = setting(0.07, "Learning rate at the start of training", gt=0)
    epsilon: float = setting(1e-10, "Constant that is added to the divisor, so that it is not 0", gt=0)

    def initial_state(self, rows: Tensor) -> State:
        """Returns the initial sum of squares of each row: zeros, (tokens, 1)."""
        return {"sum": rows.new_zeros(len(rows), 1)}

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``sum += mean(grad²)``, ``rows -= lr · weight · grad / (√sum + ε)``."""
        norm = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
        squares = state["sum"].addcmul_(norm, norm, value=1.0 / grad.shape[1])
        rows.addcmul_(grad, rate / squares.sqrt().add_(self.epsilon), value=-1.0)


@configurable
class Adadelta(RowOptimizer):
    """Optimizer Adadelta: scales a gradient by RMS(recent steps) / RMS(recent gradients).

    RMS is the root mean square. The learning rate and the weight of the row multiply the step afterwards; the
    recent steps do not include these factors.

    References: Zeiler. 2012, algorithm 1. https://arxiv.org/abs/1212.5701
    """

    STATE = {"squares": 0.0, "moves": 0.0}
    name: Literal["adadelta"] = "adadelta"
    learning_rate: float = setting(1000.0, "Learning rate at the start of training", gt=0)
    rho: float = setting(0.9, "Decay of the averages of squared steps and squared gradients", ge=0, lt=1)
    epsilon: float = setting(1e-6, "Constant that is added to the divisor, so that it is not 0", gt=0)

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``rows -= lr · weight · δ`` with ``δ = √(moves + ε) / √(squares + ε) · grad``.

        ``moves`` is the exponential average of δ², and ``squares`` is the exponential average of grad².
        """
        squares = state["squares"].mul_(self.rho).addcmul_(grad, grad, value=1 - self.rho)
        delta = state["moves"].add(self.epsilon).sqrt_().div_(squares.add(self.epsilon).sqrt_()).mul_(grad)
        state["moves"].mul_(self.rho).addcmul_(delta, delta, value=1 - self.rho)
        rows.addcmul_(delta, rate, value=-1)


@configurable
class RMSprop(RowOptimizer):
    """Optimizer RMSprop (Hinton. Neural Networks for Machine Learning, lecture 6e, 2012).

    Two options are from Graves (2013, equations 38 to 41. https://arxiv.org/abs/1308.0850). ``centered``
    subtracts the squared mean gradient from the mean squared gradient. ``momentum`` accumulates the steps in
    a velocity.

    We differ from torch.optim: if ``centered`` is set, ε is inside the root, as in equation 40. torch.optim
    adds ε after the root, and returns NaN if rounding makes the variance of a constant gradient negative.
    """

    name: Literal["rmsprop"] = "rmsprop"
    learning_rate: float = setting(0.01, "Learning rate at the start of training", gt=0)
    alpha: float = setting(0.99, "Decay of the averages of the gradient and of its square", ge=0, lt=1)
    epsilon: float = setting(1e-8, "Constant that is added to the divisor, so that it is not 0", gt=0)
    momentum: float = setting(0.0, "Fraction of the velocity that a step retains; 0: no velocity", ge=0, lt=1)
    centered: bool = setting(
        False, "Divide by the standard deviation of the gradient instead of its root mean square"
    )

    def initial_state(self, rows: Tensor) -> State:
        """Returns the averages and the velocity that the options require: zeros in the shape of ``rows``."""
        is_required = {"squares": True, "mean": self.centered, "velocity": self.momentum}
        return {name: torch.zeros_like(rows) for name in is_required if is_required[name]}

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``rows -= lr · weight · grad / (√squares + ε)``.

        ``squares`` and ``mean`` are the exponential averages of grad² and grad with decay α. If ``centered``
        is set, the divisor is √(squares − mean² + ε).
        """
        squares = state["squares"].mul_(self.alpha).addcmul_(grad, grad, value=1 - self.alpha)
        if self.centered:
            mean = state["mean"].lerp_(grad, 1 - self.alpha)
            variance = squares.addcmul(mean, mean, value=-1).clamp_(min=0)  # rounding may make it negative
            divisor = variance.add_(self.epsilon).sqrt_()
        else:
            divisor = squares.sqrt().add_(self.epsilon)
        if self.momentum:
            rows.addcmul_(state["velocity"].mul_(self.momentum).addcdiv_(grad, divisor), rate, value=-1)
        else:
            rows.addcdiv_(grad * -rate, divisor)


@configurable
class Rprop(RowOptimizer):
    """Optimizer Rprop: uses only the sign of a gradient, with a separate step length for each coordinate.

    The step length grows while the sign of the gradient stays the same, and shrinks if the sign changes.
    ``learning_rate`` is the initial step length. The factor of the schedule and the weight of the row
    multiply the step, but not the stored step length. Rprop is intended for gradients of the complete
    training set.

    References: Riedmiller, Braun. ICNN 1993. As in torch.optim, a step is not undone if the sign changes.
    """

    STATE = {"length": "learning_rate", "last": 0.0}  # name of a state: initial value, or field with it
    name: Literal["rprop"] = "rprop"
    learning_rate: float = setting(0.1, "Learning rate at the start of training", gt=0)
    etaminus: float = setting(0.5, "Factor on the step length if the sign changes", gt=0, lt=1)
    etaplus: float = setting(1.2, "Factor on the step length if the sign is unchanged", gt=1)
    step_size_min: float = setting(1e-6, "Lower bound of the step length", gt=0)
    step_size_max: float = setting(50.0, "Upper bound of the step length", gt=0)

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``rows -= sign(grad) · length``; does not update coordinates whose sign changed."""
        product = grad * state["last"]  # negative where the sign changed
        factor = torch.ones_like(product).masked_fill_(product > 0, self.etaplus)
        factor.masked_fill_(product < 0, self.etaminus)
        length = state["length"].mul_(factor).clamp_(self.step_size_min, self.step_size_max)
        applied_grad = grad.masked_fill(product < 0, 0)
        rows.addcmul_(applied_grad.sign() * length, divide_rate(rate, self.learning_rate), value=-1)
        state["last"].copy_(applied_grad)


@configurable
class SMORMS3(RowOptimizer):
    """Optimizer SMORMS3: RMSprop whose learning rate depends on the agreement of recent gradients.

    The agreement of a coordinate is mean(grad)² / mean(grad²), which is 1 if all gradients are equal, and
    near 0 if they are noise. It also determines how many gradients are averaged. ``learning_rate`` is the
    maximum learning rate of a coordinate, which applies in the first step and at high agreement. The factor
    of the schedule and the weight of the row multiply the step.

    References: Funk. RMSprop loses to SMORMS3: Beware the Epsilon! 2015.
        https://sifter.org/~simon/journal/20150420.html
    """

    STATE = {"memory": 1.0, "mean": 0.0, "squares": 0.0}
    name: Literal["smorms3"] = "smorms3"
    learning_rate: float = setting(0.05, "Learning rate at the start of training", gt=0)
    epsilon: float = setting(1e-16, "Constant that is added to the divisor, so that it is not 0", gt=0)

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``rows -= weight · grad · min(lr, agreement) / (√squares + ε)``.

        ``agreement`` is mean² / (squares + ε), where ``mean`` and ``squares`` are running averages of grad
        and grad². The newest gradient has weight 1 / (memory + 1) in both averages. ``memory`` becomes
        1 + memory · (1 − agreement); it is about the number of gradients that are averaged.
        """
        memory, mean, squares = state["memory"], state["mean"], state["squares"]
        newest_weight = 1 / (memory + 1)
        mean.lerp_(grad, newest_weight)
        squares.lerp_(grad * grad, newest_weight)
        agreement = mean * mean / (squares + self.epsilon)
        length = agreement.clamp(max=self.learning_rate).div_(squares.sqrt().add_(self.epsilon))
        rows.addcmul_(grad * length, divide_rate(rate, self.learning_rate), value=-1)
        memory.mul_(1 - agreement).add_(1)
