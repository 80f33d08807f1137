"""Tuners set learning rate and momentum of train.optimizer during training, from all its gradients. What
they remember of a row is in its state; of the whole, in ``memory``, float64 tensors that a checkpoint keeps.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from tasks.form import configurable, setting
from tasks.optimizers import Momentum, Optimizer
from tasks.optimizers.base import ParameterUpdate, State

Updates = Sequence[ParameterUpdate]
_TINY = 1e-15  # keeps divisions finite, as in the authors' release


@configurable
class NoTuner:
    """Learning rate and momentum as set."""

    name: Literal["none"] = "none"

    def initial_state(self, optimizer: Optimizer, rows: Tensor) -> State:
        """Nothing for each row."""
        return {}

    def initial_memory(self) -> State:
        """Nothing for the whole."""
        return {}

    def tune_(self, optimizer: Optimizer, updates: Updates, memory: State, step: int) -> Optimizer:
        """The optimizer as it is."""
        return optimizer


@configurable
class YellowFin:
    """YellowFin: learning rate and momentum of the momentum optimizer from the whole gradient's history.

    With h = ‖g‖² of a step, all averages exponential (decay β) and divided by 1 − β^t, w a window of steps:

        h_min, h_max = averages of min(h in w) (of its logarithm) and of max(h in w)
        C = E‖g‖² − ‖E g‖²          the variance of the gradient
        D = E(E‖g‖ / E‖g‖²)         the distance to the optimum
        √μ = max(x, (√(h_max / h_min) − 1) / (√(h_max / h_min) + 1)), x the root of the cubic in _root
        lr = (1 − √μ)² / h_min, times t / (10 · window) at first

    The E g of an untouched row decays at its next touch: ‖E g‖² of the whole table costs only touched rows.
    ``sparsity_debias`` scales h and C by the mean fraction of touched coordinates, D by 1/√ of it.
    Zhang, Mitliagkas. MLSys 2019, algorithms 1 to 4. https://arxiv.org/abs/1706.03471 Vieta's substitution,
    slow start and sparsity as in the authors' release. We differ: the velocity of an untouched row waits.
    """

    name: Literal["yellowfin"] = "yellowfin"
    window: int = setting(20, "Steps whose smallest and largest gradients count", ge=1)
    beta: float = setting(0.999, "Decay of all averages", gt=0, lt=1)
    rate_factor: float = setting(1.0, "Factor on the learning rate that is found", gt=0)
    sparsity_debias: bool = setting(True, "Allow for rows that a step does not touch")

    def initial_state(self, optimizer: Optimizer, rows: Tensor) -> State:
        """E g, and the step that touched a row last (tokens, 1), float32: exact up to 16 million steps."""
        if not isinstance(optimizer, Momentum):
            text = "the tuner yellowfin tunes the momentum optimizer"
            raise ValueError(f"{text}, got {optimizer.name!r}; set train.optimizer=momentum")
        return {"grad_mean": torch.zeros_like(rows), "seen": rows.new_zeros(len(rows), 1)}

    def initial_memory(self) -> State:
        """The window, and seven averages before bias correction; float64."""
        return {"window": torch.zeros(self.window).double(), "averages": torch.zeros(7).double()}

    def tune_(self, optimizer: Optimizer, updates: Updates, memory: State, step: int) -> Optimizer:
        """The optimizer with this step's rate and momentum (in step 1 its own); updates state and memory."""
        assert isinstance(optimizer, Momentum)
        curvature = sum(float(update.grad.square().sum(dtype=torch.float64)) for update in updates)
        whole = sum((update.table_rows or len(update.rows)) * update.grad.shape[1] for update in updates)
        present = sum(update.grad.numel() for update in updates) / whole
        memory["window"][(step - 1) % self.window] = curvature
        recent = memory["window"][: min(step, self.window)]
        *before, distance, mean_square, sparsity = memory["averages"].tolist()
        seen = math.log(float(recent.min()) + _TINY), float(recent.max()), curvature, math.sqrt(curvature)
        low, high, square, norm = map(self._average, before, seen)
        distance = self._average(distance, norm / (square + _TINY))
        sparsity = self._average(sparsity, present)
        change = sum(self._follow_(update, step) for update in updates)
        mean_square = max(0.0, self.beta**2 * mean_square + change)
        averages = [low, high, square, norm, distance, mean_square, sparsity]
        memory["averages"].copy_(torch.tensor(averages, dtype=torch.float64))
        if step == 1:
            return optimizer
        begun = 1 - self.beta**step
        share = sparsity / begun if self.sparsity_debias else 1.0
        h_min, h_max = math.exp(low / begun) * share, high / begun * share
        variance = max(square / begun - mean_square / begun**2, _TINY) * share
        spread = math.sqrt(max((h_max + _TINY) / (h_min + _TINY), 1.0))
        root = _root(distance / begun / math.sqrt(share), h_min, variance)
        root = max(root, (spread - 1) / (spread + 1))
        rate = (1 - root) ** 2 / (h_min + _TINY) * min(1.0, step / (10 * self.window))
        return replace(optimizer, learning_rate=rate * self.rate_factor, momentum=min(root**2, 1 - 1e-6))

    def _average(self, average: float, value: float) -> float:
        return self.beta * average + (1 - self.beta) * value

    def _follow_(self, update: ParameterUpdate, step: int) -> float:
        """Brings E g of the touched rows up to this step; the change of ‖E g‖² beyond its decay."""
        mean, seen = update.state["grad_mean"], update.state["seen"]
        mean.mul_(torch.pow(self.beta, step - seen))
        before = float(mean.square().sum(dtype=torch.float64))
        mean.add_(update.grad, alpha=1 - self.beta)
        seen.fill_(step)
        return float(mean.square().sum(dtype=torch.float64)) - before


Tuner = NoTuner | YellowFin


def _root(distance: float, h_min: float, variance: float) -> float:
    """√μ in [0, 1] that minimises μ D² + (1 − √μ)⁴ C / h_min²: √μ = y + 1, y³ + p y + p = 0."""
    p = (distance + _TINY) ** 2 * (h_min + _TINY) ** 2 / 2 / (variance + _TINY)
    cube = (-math.sqrt(p**2 + 4 / 27 * p**3) - p) / 2
    w = math.copysign(abs(cube) ** (1 / 3), cube)
    return w - p / 3 / (w + math.copysign(_TINY, w)) + 1
