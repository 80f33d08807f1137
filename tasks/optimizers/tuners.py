"""Tuners adapt the learning rate and momentum of train.optimizer to the gradients during training.

A tuner stores statistics of each row in the optimizer state of the row, and all other statistics in
``memory``, a dictionary of float64 tensors. Checkpoints contain all statistics.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from storage.lazy import Tensor, torch
from tasks.form import configurable, setting
from tasks.optimizers import Momentum, Optimizer
from tasks.optimizers.base import ParameterUpdate, State

Updates = Sequence[ParameterUpdate]
_TINY = 1e-15  # prevents divisions by zero, as in the code of the authors


@configurable
class NoTuner:
    """Strategy: learning rate and momentum are not adapted."""

    name: Literal["none"] = "none"

    def initial_state(self, optimizer: Optimizer, rows: Tensor) -> State:
        """Returns an empty dictionary, because this tuner has no statistics of rows."""
        return {}

    def initial_memory(self) -> State:
        """Returns an empty dictionary, because this tuner has no statistics."""
        return {}

    def tune_(self, optimizer: Optimizer, updates: Updates, memory: State, step: int) -> Optimizer:
        """Returns the optimizer unchanged."""
        return optimizer


@configurable
class YellowFin:
    """Strategy YellowFin: sets learning rate and momentum of the optimizer "momentum" from past gradients.

    Let g be the gradient of step t, h = ‖g‖², and w the last ``window`` steps. E denotes an exponential
    average with decay β, divided by 1 − β^t. The momentum μ and the learning rate lr of step t are computed
    from the following quantities:

        h_min = exp E(log min(h in w)),  h_max = E(max(h in w))
        C = E‖g‖² − ‖E g‖²          the variance of the gradient
        D = E(E‖g‖ / E‖g‖²)         the distance to the optimum
        √μ = max(x, (√(h_max / h_min) − 1) / (√(h_max / h_min) + 1)), where x is from _momentum_root
        lr = (1 − √μ)² / h_min, times t / (10 · window) in the first 10 · window steps

    A step updates E g only for the rows that occur in the step. When a row occurs again, the decay of the
    steps in which it did not occur is applied first. ``sparsity_debias`` multiplies h and C by the mean share
    of coordinates that a step updates, and divides D by the square root of this share.

    We differ from the code of the authors: a step does not change the velocity of a row that does not occur
    in it. Their code also averages learning rate and momentum with decay β; the paper does not. Their code
    clips gradients at a norm that depends on h_max; here, only ``train.clipping`` clips them.

    References: Zhang, Mitliagkas. MLSys 2019, algorithms 1 to 4. https://arxiv.org/abs/1706.03471. The
        solution of the cubic equation, slow start and sparsity are from the code of the authors.
    """

    name: Literal["yellowfin"] = "yellowfin"
    window: int = setting(20, "Number of recent steps from which h_min and h_max are computed", ge=1)
    beta: float = setting(0.999, "Decay of all exponential averages", gt=0, lt=1)
    rate_factor: float = setting(1.0, "Factor on the computed learning rate", gt=0)
    sparsity_debias: bool = setting(True, "Correct the averages, because most rows do not occur in a step")

    def initial_state(self, optimizer: Optimizer, rows: Tensor) -> State:
        """Returns the initial statistics of rows: the mean gradient E[g], and the last step of each row.

        The number of the step is stored as float32 (tokens, 1), which is exact up to 2^24.

        Raises:
            ValueError: The optimizer is not "momentum".
        """
        if not isinstance(optimizer, Momentum):
            raise ValueError(
                f"the tuner yellowfin requires the optimizer momentum, got {optimizer.name!r}; set "
                "train.optimizer=momentum"
            )
        return {"grad_mean": torch.zeros_like(rows), "seen": rows.new_zeros(len(rows), 1)}

    def initial_memory(self) -> State:
        """Returns the initial h of the last ``window`` steps and the seven initial averages: zeros."""
        return {"window": torch.zeros(self.window).double(), "averages": torch.zeros(7).double()}

    def tune_(self, optimizer: Optimizer, updates: Updates, memory: State, step: int) -> Optimizer:
        """Updates the statistics, and returns the optimizer with the learning rate and momentum of this step.

        In step 1, it returns the optimizer unchanged.
        """
        assert isinstance(optimizer, Momentum)
        curvature = sum(float(update.grad.square().sum(dtype=torch.float64)) for update in updates)
        coordinates = sum(
            (update.table_rows or len(update.rows)) * update.grad.shape[1] for update in updates
        )
        updated_share = sum(update.grad.numel() for update in updates) / coordinates
        memory["window"][(step - 1) % self.window] = curvature
        curvatures = memory["window"][: min(step, self.window)]
        *averages, distance, mean_grad_square, sparsity = memory["averages"].tolist()
        minimum, maximum = float(curvatures.min()), float(curvatures.max())
        new_values = math.log(minimum + _TINY), maximum, curvature, math.sqrt(curvature)
        log_min, max_curvature, mean_curvature, mean_norm = map(self._average, averages, new_values)
        distance = self._average(distance, mean_norm / (mean_curvature + _TINY))
        sparsity = self._average(sparsity, updated_share)
        square_change = sum(self._update_mean_(update, step) for update in updates)
        mean_grad_square = max(0.0, self.beta**2 * mean_grad_square + square_change)
        averages = [log_min, max_curvature, mean_curvature, mean_norm, distance, mean_grad_square, sparsity]
        memory["averages"].copy_(torch.tensor(averages, dtype=torch.float64))
        if step == 1:
            return optimizer
        correction = 1 - self.beta**step
        sparsity_factor = sparsity / correction if self.sparsity_debias else 1.0
        h_min = math.exp(log_min / correction) * sparsity_factor
        h_max = max_curvature / correction * sparsity_factor
        variance = (
            max(mean_curvature / correction - mean_grad_square / correction**2, _TINY) * sparsity_factor
        )
        condition_root = math.sqrt(max((h_max + _TINY) / (h_min + _TINY), 1.0))
        momentum_root = _momentum_root(distance / correction / math.sqrt(sparsity_factor), h_min, variance)
        momentum_root = max(momentum_root, (condition_root - 1) / (condition_root + 1))
        rate = (1 - momentum_root) ** 2 / (h_min + _TINY) * min(1.0, step / (10 * self.window))
        momentum = min(momentum_root**2, 1 - 1e-6)
        return replace(optimizer, learning_rate=rate * self.rate_factor, momentum=momentum)

    def _average(self, average: float, value: float) -> float:
        """Returns the exponential average after a new value."""
        return self.beta * average + (1 - self.beta) * value

    def _update_mean_(self, update: ParameterUpdate, step: int) -> float:
        """Updates E g of the rows in a step; returns the change of ‖E g‖² due to the new gradients."""
        mean, last_steps = update.state["grad_mean"], update.state["seen"]
        mean.mul_(torch.pow(self.beta, step - last_steps))
        square_before = float(mean.square().sum(dtype=torch.float64))
        mean.add_(update.grad, alpha=1 - self.beta)
        last_steps.fill_(step)
        return float(mean.square().sum(dtype=torch.float64)) - square_before


Tuner = NoTuner | YellowFin


def _momentum_root(distance: float, h_min: float, variance: float) -> float:
    """Returns the x = √μ in [0, 1] that minimises x² D² + (1 − x)⁴ C / h_min².

    y = x − 1 is the root of y³ + p y + p = 0, which is computed by Vieta's substitution.
    """
    p = (distance + _TINY) ** 2 * (h_min + _TINY) ** 2 / 2 / (variance + _TINY)
    cube = (-math.sqrt(p**2 + 4 / 27 * p**3) - p) / 2
    w = math.copysign(abs(cube) ** (1 / 3), cube)
    return w - p / 3 / (w + math.copysign(_TINY, w)) + 1
