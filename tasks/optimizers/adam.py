"""Optimizers: Adam and its variants for embedding tables.

A step changes only the rows that occur in the batch, and the moments of these rows. The bias correction uses
the number of all steps or, with ``train.per_row_steps``, the number of steps in which a row has occurred. The
operations have the same order as in torch.optim, so that the rounding is the same.
"""

from functools import lru_cache
from typing import Any, Literal

from storage.lazy import Tensor, torch
from tasks.form import configurable, setting
from tasks.optimizers.base import RowOptimizer, State, Steps, bias_correction, divide_rate


@configurable
class _Adam(RowOptimizer):
    """Base class of Adam and its variants."""

    STATE = {"first": 0.0, "second": 0.0}
    learning_rate: float = setting(0.1, "Learning rate at the start of training", gt=0)
    beta1: float = setting(0.9, "Decay rate of the first moment", ge=0, lt=1)
    beta2: float = setting(0.999, "Decay rate of the second moment", ge=0, lt=1)
    epsilon: float = setting(1e-8, "Constant that is added to the divisor, so that it is not 0", gt=0)

    def _update_moments_(self, grad: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """Updates the moments in ``state`` and returns the first and the second moment."""
        first_moment = state["first"].lerp_(grad, 1 - self.beta1)
        return first_moment, state["second"].mul_(self.beta2).addcmul_(grad, grad, value=1 - self.beta2)

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``rows -= lr · weight · first / (1 − β₁^t) / (√(second / (1 − β₂^t)) + ε)``."""
        first_moment, second_moment = self._update_moments_(grad, state)
        if "largest" in state:  # AMSGrad uses the largest second moment instead
            second_moment = torch.maximum(state["largest"], second_moment, out=state["largest"])
        denominator = (second_moment.sqrt() / bias_correction(self.beta2, step) ** 0.5).add_(self.epsilon)
        rows.addcdiv_(first_moment * -divide_rate(rate, bias_correction(self.beta1, step)), denominator)


@configurable
class Adam(_Adam):
    """Optimizer: Adam (Kingma, Ba. ICLR 2015, algorithm 1. https://arxiv.org/abs/1412.6980)."""

    name: Literal["adam"] = "adam"


@configurable
class AMSGrad(_Adam):
    """Optimizer AMSGrad: Adam with the largest second moment so far instead of the current second moment.

    Bias corrections are applied as in torch.optim.Adam(amsgrad=True).

    References: Reddi, Kale, Kumar. ICLR 2018, algorithm 2. https://arxiv.org/abs/1904.09237
    """

    STATE = {"first": 0.0, "second": 0.0, "largest": 0.0}
    name: Literal["amsgrad"] = "amsgrad"


@configurable
class AdamW(_Adam):
    """Optimizer AdamW: Adam with decoupled weight decay, applied to the rows that occur in a step.

    References: Loshchilov, Hutter. ICLR 2019, algorithm 2. https://arxiv.org/abs/1711.05101
    """

    name: Literal["adamw"] = "adamw"
    weight_decay: float = setting(0.01, "A step subtracts learning rate · weight_decay · row", ge=0)

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``rows *= 1 − lr · weight · weight_decay``, and then applies the update of Adam."""
        rows.mul_((1 - rate.double() * self.weight_decay).to(rows.dtype))
        super().update_(rows, grad, state, rate, step)


@configurable
class Adamax(_Adam):
    """Optimizer Adamax: Adam that divides by a decaying maximum of absolute gradients.

    References: Kingma, Ba. ICLR 2015, algorithm 2. https://arxiv.org/abs/1412.6980
    """

    STATE = {"first": 0.0, "largest": 0.0}
    name: Literal["adamax"] = "adamax"
    learning_rate: float = setting(0.2, "Learning rate at the start of training", gt=0)
    beta2: float = setting(0.999, "Decay rate of the maximum of absolute gradients", ge=0, lt=1)

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``rows -= lr · weight / (1 − β₁^t) · first / largest``.

        ``largest`` is the maximum of β₂ · largest (of the previous step) and |grad| + ε.
        """
        first_moment = state["first"].lerp_(grad, 1 - self.beta1)
        maximum = state["largest"].mul_(self.beta2)
        torch.maximum(maximum, grad.abs().add_(self.epsilon), out=maximum)
        rows.addcdiv_(first_moment * -divide_rate(rate, bias_correction(self.beta1, step)), maximum)


@configurable
class NAdam(_Adam):
    """Optimizer NAdam: Adam with Nesterov momentum (Dozat. ICLR workshop 2016, algorithm 2)."""

    name: Literal["nadam"] = "nadam"
    learning_rate: float = setting(0.03, "Learning rate at the start of training", gt=0)
    momentum_decay: float = setting(
        0.004, "ψ: speed at which the momentum rises from beta1 / 2 to beta1", ge=0
    )

    def update_(self, rows: Tensor, grad: Tensor, state: State, rate: Tensor, step: Steps) -> None:
        """Computes ``rows -= lr · weight · (a · grad + b · first) / (√(second / (1 − β₂^t)) + ε)``.

        The momentum of step t is ``μ_t = β₁ · (1 − ½ · 0.96^(t · ψ))``, and ``M_t = μ_1 · … · μ_t``. The
        factors are ``a = (1 − μ_t) / (1 − M_t)`` and ``b = μ_{t+1} / (1 − M_{t+1})``.
        """
        first_moment, second_moment = self._update_moments_(grad, state)
        denominator = second_moment.div(bias_correction(self.beta2, step)).sqrt_().add_(self.epsilon)
        rate, momentum, next_momentum = rate.double(), self._momentum(step), self._momentum(step + 1)
        grad_factor = rate * ((1 - momentum) / (1 - self._momentum_product(step)))
        first_factor = rate * (next_momentum / (1 - self._momentum_product(step + 1)))
        rows.addcdiv_(grad * -grad_factor.to(grad.dtype), denominator)
        rows.addcdiv_(first_moment * -first_factor.to(grad.dtype), denominator)

    def _momentum(self, step: Steps) -> Any:
        """Returns the momentum μ_t of step t."""
        step = step.double() if isinstance(step, torch.Tensor) else step
        return self.beta1 * (1 - 0.5 * 0.96 ** (step * self.momentum_decay))

    def _momentum_product(self, step: Steps) -> Tensor:
        """Returns M_t, the product of the momenta of the first t steps."""
        step, products = torch.as_tensor(step).long(), _momentum_products(self)
        return products.to(step.device)[step.clamp(max=len(products) - 1)]


@lru_cache
def _momentum_products(optimizer: NAdam) -> Tensor:
    """Returns the products M_0 = 1, M_1, … until 1 − M_t rounds to 1 in float64, after some hundred steps.

    The last entry is 0 and is used for all later steps.
    """
    products = [1.0]
    while products[-1] > 2**-54:
        products.append(products[-1] * optimizer._momentum(len(products)))
    return torch.tensor([*products[:-1], 0.0], dtype=torch.float64)
