"""YellowFin: learning rate and momentum from how the whole gradient has been, around the momentum rule.

With h = ‖g‖² of a step, all averages exponential (decay β) and divided by 1 − β^t, and w a window of the last steps:

    h_min, h_max = averages of min(h in w) (of its logarithm) and of max(h in w)
    C = E‖g‖² − ‖E g‖²          the variance of the gradient
    D = E(E‖g‖ / E‖g‖²)         the distance to the optimum
    √μ = max(x, (√(h_max / h_min) − 1) / (√(h_max / h_min) + 1)) with x the root of x² D² + (1 − x)⁴ C / h_min² that is least
    lr = (1 − √μ)² / h_min, times t / (10 · window) at first

The gradient of a row that a step does not touch is zero: its E g decays, which is made up for when it is touched next, so
that ‖E g‖² over the whole table costs only the touched rows. Where most rows are untouched, ``sparsity`` (the mean share of
touched coordinates) scales h and C by itself and D by 1/√ of it.

References:
    Zhang, Mitliagkas. YellowFin and the Art of Momentum Tuning. MLSys 2019, algorithms 1 to 4. https://arxiv.org/abs/1706.03471
    The cubic's root by Vieta's substitution, slow start and sparsity as in the authors' release. We differ: the velocity of an
    untouched row waits, as under every rule here; no gradient is clipped (that is the clipping's part).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from tasks.form import FORM
from tasks.train.parts import Part
from tasks.train.rules import Momentum, Rule

_TINY = 1e-15  # keeps divisions finite, as in the authors' release


@dataclass(frozen=True, kw_only=True)
class YellowFin:
    """Tunes the momentum rule; the rule's own rate and momentum serve the first step."""

    __pydantic_config__ = FORM
    name: Literal["yellowfin"] = "yellowfin"
    window: int = field(default=20, metadata={"description": "Steps whose smallest and largest gradients count", "ge": 1})
    decay: float = field(default=0.999, metadata={"description": "Decay of all averages", "gt": 0, "lt": 1})
    rate_factor: float = field(default=1.0, metadata={"description": "Factor on the rate that is found", "gt": 0})
    sparsity: bool = field(default=True, metadata={"description": "Allow for rows that a step does not touch"})

    def initial_state(self, rule: Rule, rows: Tensor) -> dict[str, Tensor]:
        """Of each row: E g, zero, and the step that touched it last (tokens, 1), float32: exact up to 16 million steps.

        Raises:
            ValueError: Another rule than momentum.
        """
        if not isinstance(rule, Momentum):
            raise ValueError(f"the tuner yellowfin sets the momentum rule's rate and momentum, the rule is {rule.name!r}; set train.rule=momentum")
        return {"grad_mean": torch.zeros_like(rows), "seen": rows.new_zeros(len(rows), 1)}

    def initial_memory(self) -> dict[str, Tensor]:
        """Of the whole: the window, and seven averages that are not divided yet; float64."""
        return {"window": torch.zeros(self.window, dtype=torch.float64), "averages": torch.zeros(7, dtype=torch.float64)}

    def tune_(self, rule: Rule, parts: Sequence[Part], memory: Mapping[str, Tensor], step: int) -> Rule:
        """The rule with the rate and momentum of this step.

        Args:
            rule: Momentum.
            parts: All that moves under it; their ``grad_mean`` and ``seen`` are brought up to date.
            memory: Brought up to date.
            step: Counts from 1.
        """
        assert isinstance(rule, Momentum)
        curvature = sum(float(part.grad.square().sum(dtype=torch.float64)) for part in parts)
        present = sum(part.grad.numel() for part in parts) / sum(part.whole * part.grad.shape[1] for part in parts)
        memory["window"][(step - 1) % self.window] = curvature
        seen = memory["window"][: min(step, self.window)]
        low, high, square, norm, distance, mean_square, sparsity = memory["averages"].tolist()
        low, high = self._average(low, math.log(float(seen.min()) + _TINY)), self._average(high, float(seen.max()))
        square, norm = self._average(square, curvature), self._average(norm, math.sqrt(curvature))
        distance, sparsity = self._average(distance, norm / (square + _TINY)), self._average(sparsity, present)
        mean_square = max(0.0, self.decay**2 * mean_square + sum(self._follow_(part, step) for part in parts))
        memory["averages"].copy_(torch.tensor([low, high, square, norm, distance, mean_square, sparsity], dtype=torch.float64))
        if step == 1:
            return rule
        begun = 1 - self.decay**step
        share = sparsity / begun if self.sparsity else 1.0
        h_min, h_max = math.exp(low / begun) * share, high / begun * share
        variance = max(square / begun - mean_square / begun**2, _TINY) * share
        root = _root(distance / begun / math.sqrt(share), h_min, variance)
        spread = math.sqrt(max((h_max + _TINY) / (h_min + _TINY), 1.0))
        root = max(root, (spread - 1) / (spread + 1))
        rate = (1 - root) ** 2 / (h_min + _TINY) * min(1.0, step / (10 * self.window))
        return replace(rule, learning_rate=rate * self.rate_factor, momentum=min(root**2, 1 - 1e-6))

    def _average(self, average: float, value: float) -> float:
        return self.decay * average + (1 - self.decay) * value

    def _follow_(self, part: Part, step: int) -> float:
        """Brings E g of the touched rows up to this step; by how much ‖E g‖² differs from what decay alone would leave."""
        mean, seen = part.state["grad_mean"], part.state["seen"]
        mean.mul_(torch.pow(self.decay, step - seen))
        before = float(mean.square().sum(dtype=torch.float64))
        mean.add_(part.grad, alpha=1 - self.decay)
        seen.fill_(step)
        return float(mean.square().sum(dtype=torch.float64)) - before


def _root(distance: float, h_min: float, variance: float) -> float:
    """√μ in [0, 1] that minimises μ D² + (1 − √μ)⁴ C / h_min²: with x = y + 1, y³ + p y + p = 0, p = D² h_min² / (2 C)."""
    p = (distance + _TINY) ** 2 * (h_min + _TINY) ** 2 / 2 / (variance + _TINY)
    cube = (-math.sqrt(p**2 + 4 / 27 * p**3) - p) / 2
    w = math.copysign(abs(cube) ** (1 / 3), cube)
    return w - p / 3 / (w + math.copysign(_TINY, w)) + 1
