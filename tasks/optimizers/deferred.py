"""Checks on the device whether gradients are finite, without host synchronization.

A host that reads a gradient from a GPU has to wait for it, and the GPU runs out of work. Therefore, the GPU
checks the gradients. After the first non-finite gradient, steps change nothing until the host reads their
number.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from tasks.optimizers.base import ParameterUpdate
from tasks.optimizers.parameter_groups import ParameterGroups


class DeferredCheck:
    """Updates parameters, and restores their previous values if a gradient is not finite (a skipped step).

    Args:
        groups: Optimizers of the parameters, without a tuner.
    """

    def __init__(self, groups: ParameterGroups) -> None:
        self._groups, self._skipped = groups, None

    def update_(self, updates: Mapping[str, ParameterUpdate], factor: float, step: int) -> None:
        """Applies a step like ParameterGroups.update_, or skips it if a gradient is NaN or infinite."""
        all_finite = torch.stack([torch.isfinite(update.grad).all() for update in updates.values()]).all()
        count = all_finite.new_zeros((), dtype=torch.int64) if self._skipped is None else self._skipped
        self._skipped = count + (~all_finite | (count > 0))
        tensors = [tensor for update in updates.values() for tensor in (update.rows, *update.state.values())]
        copies = [tensor.clone() for tensor in tensors]
        self._groups.update_finite_(updates, factor, step)
        for tensor, copy in zip(tensors, copies, strict=True):
            torch.where(self._skipped > 0, copy, tensor, out=tensor)

    def skipped(self) -> int:
        """Returns the number of steps skipped since the last call. Waits for the device."""
        count: Tensor | None = self._skipped
        self._skipped = None
        return 0 if count is None else int(count)
