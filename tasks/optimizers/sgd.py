"""Optimizers: stochastic gradient descent, also with momentum or averaging, as in torch.optim."""

from typing import Literal

from storage.lazy import Tensor, torch
from tasks.form import configurable, setting
from tasks.optimizers.base import RowOptimizer, State, Steps, divide_rate


@configurable
class SGD(RowOptimizer):
    """Optimizer: stochastic gradient descent without momentum."""

    name: Literal["sgd"] = "sgd"
    learning_rate: float = setting(500.0, "Learning rate at the start of training", gt=0)

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``rows -= lr · weight · grad``."""
        rows.addcmul_(grad, rate, value=-1)


@configurable
class Momentum(RowOptimizer):
    """Optimizer: SGD with momentum, as in torch.optim.SGD(momentum=…).

    References: Polyak. USSR Computational Mathematics 4, 1964.
    """

    STATE = {"velocity": 0.0}
    name: Literal["momentum"] = "momentum"
    learning_rate: float = setting(150.0, "Learning rate at the start of training", gt=0)
    momentum: float = setting(0.9, "Fraction of the velocity that a step retains", ge=0, lt=1)
    dampening: float = setting(0.0, "Share of the gradient that is not added to the velocity", ge=0, lt=1)

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``rows -= lr · weight · velocity``.

        Before that, ``velocity`` becomes momentum · velocity + (1 − dampening) · grad.
        """
        velocity = state["velocity"]
        # Like torch.optim.SGD, do not dampen the first gradient of a row, whose velocity is still zero.
        is_first_step = ~velocity.any(1, keepdim=True) if self.dampening else None
        velocity.mul_(self.momentum).add_(grad, alpha=1 - self.dampening)
        if is_first_step is not None:
            velocity.copy_(torch.where(is_first_step, grad, velocity))
        rows.addcmul_(velocity, rate, value=-1)


@configurable
class Nesterov(RowOptimizer):
    """Optimizer: SGD with Nesterov momentum, as in torch.optim.SGD(nesterov=True).

    References: Sutskever, Martens, Dahl, Hinton. ICML 2013, section 2.
    """

    STATE = {"velocity": 0.0}
    name: Literal["nesterov"] = "nesterov"
    learning_rate: float = setting(150.0, "Learning rate at the start of training", gt=0)
    momentum: float = setting(0.9, "Fraction of the velocity that a step retains", gt=0, lt=1)

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``rows -= lr · weight · (grad + momentum · velocity)``.

        Before that, ``velocity`` becomes momentum · velocity + grad.
        """
        velocity = state["velocity"].mul_(self.momentum).add_(grad)
        rows.addcmul_(grad.add(velocity, alpha=self.momentum), rate, value=-1)


@configurable
class ASGD(RowOptimizer):
    """Optimizer: SGD that also averages the rows over steps, as in torch.optim.ASGD.

    The average is stored in the optimizer state, but title vectors are computed from the rows themselves. The
    decay of the step length depends on the learning rate without the factors of schedule and row weight.

    References: Polyak, Juditsky. SIAM J. Control and Optimization 30 (1992). Schedule: Bottou. Stochastic
        Gradient Descent Tricks. 2012, section 5.
    """

    name: Literal["asgd"] = "asgd"
    learning_rate: float = setting(500.0, "Learning rate at the start of training", gt=0)
    lambd: float = setting(
        1e-4, "λ: weight decay; a larger value also makes the step length fall faster", ge=0
    )
    alpha: float = setting(0.75, "Exponent in the decay of the step length", ge=0, le=1)
    t0: float = setting(1e6, "Number of steps before rows are averaged", ge=0)

    def initial_state(self, rows: Tensor) -> State:
        """Returns the initial average, which is a copy of the rows."""
        return {"average": rows.clone()}

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``rows = (1 − λη) · rows − η · grad`` with ``η = lr · weight / (1 + λ · lr · (t − 1))^α``.

        ``average`` is the mean of the rows over the steps after ``t0``.
        """
        previous_steps = step - 1
        eta = divide_rate(rate, (1 + self.lambd * self.learning_rate * previous_steps) ** self.alpha)
        rows.mul_((1 - self.lambd * eta.double()).to(rows.dtype)).addcmul_(grad, eta, value=-1)
        count = previous_steps - self.t0  # number of averaged steps
        count = count.clamp(min=1) if isinstance(count, torch.Tensor) else max(1.0, count)
        state["average"].lerp_(rows, 1 / count)
