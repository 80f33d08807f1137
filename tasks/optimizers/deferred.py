"""Checks on the device whether gradients are finite, without host synchronization.

If the host reads a gradient from a GPU, it waits and queues no further work. Therefore, the device checks the
gradients: a step with a non-finite gradient and all later steps change nothing and are counted.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from tasks.optimizers.base import ParameterUpdate
from tasks.optimizers.parameter_groups import ParameterGroups


class DeferredCheck:
    """Updates parameters, and restores them from copies if a gradient is not finite (the step is skipped).

    ``groups`` must not have a tuner.
    """

    def __init__(self, groups: ParameterGroups) -> None:
        self._groups, self._skipped = groups, None

    def update_(self, updates: Mapping[str, ParameterUpdate], factor: float, step: int) -> None:
        """Applies a step like ParameterGroups.update_, or skips it if a gradient is not finite."""
        all_finite = torch.stack([torch.isfinite(update.grad).all() for update in updates.values()]).all()
        skipped = all_finite.new_zeros((), dtype=torch.int64) if self._skipped is None else self._skipped
        self._skipped = skipped + (~all_finite | (skipped > 0))
        changed = [tensor for update in updates.values() for tensor in (update.rows, *update.state.values())]
        copies = [tensor.clone() for tensor in changed]
        self._groups.update_finite_(updates, factor, step)
        for tensor, copy in zip(changed, copies, strict=True):
            torch.where(self._skipped > 0, copy, tensor, out=tensor)

    def skipped(self) -> int:
        """Returns the number of steps skipped since the last call; synchronizes with the device."""
        skipped: Tensor | None = self._skipped
        self._skipped = None
        return 0 if skipped is None else int(skipped)
