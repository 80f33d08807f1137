"""Gradient clipping, applied to the gradients of embedding rows and of dense parameters together."""

from collections.abc import Sequence
from typing import Literal

from storage.lazy import Tensor, torch
from tasks.form import configurable, setting


@configurable
class NoClipping:
    """Strategy: gradients are not clipped."""

    name: Literal["none"] = "none"

    def clip_(self, grads: Sequence[Tensor]) -> None:
        """Leaves the gradients unchanged."""


@configurable
class ClipByNorm:
    """Strategy: scales all gradients of a step by min(1, max_norm / norm of the concatenated gradients).

    References: Pascanu, Mikolov, Bengio. ICML 2013, algorithm 1. https://arxiv.org/abs/1211.5063
    """

    name: Literal["by_norm"] = "by_norm"
    max_norm: float = setting(1.0, "Maximum Euclidean norm of the concatenated gradients of a step", gt=0)

    def clip_(self, grads: Sequence[Tensor]) -> None:
        """Scales the gradients, which must be finite, in place."""
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(grad) for grad in grads]))
        factor = (self.max_norm / norm).clamp(max=1.0)  # also 1 for a norm of zero
        for grad in grads:
            grad.mul_(factor)


@configurable
class ClipByValue:
    """Strategy: clamps each coordinate of a gradient to [−clip_value, clip_value]."""

    name: Literal["by_value"] = "by_value"
    clip_value: float = setting(0.1, "Maximum absolute value of each coordinate of a gradient", gt=0)

    def clip_(self, grads: Sequence[Tensor]) -> None:
        """Clamps all gradients in place."""
        for grad in grads:
            grad.clamp_(-self.clip_value, self.clip_value)


Clipping = NoClipping | ClipByNorm | ClipByValue
