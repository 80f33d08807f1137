"""Steps whose gradients the host does not wait for.

On a GPU a look at a gradient costs the step its head start: nothing is queued while the host waits. So the
device looks: a step with a non-finite gradient, and every one after it, changes nothing and is counted.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from tasks.optimizers.base import ParameterUpdate
from tasks.optimizers.parameter_groups import ParameterGroups


class DeferredCheck:
    """Updates by ``groups`` (without a tuner); what a step would have changed is copied before."""

    def __init__(self, groups: ParameterGroups) -> None:
        self._groups, self._skipped = groups, None

    def update_(self, updates: Mapping[str, ParameterUpdate], factor: float, step: int) -> None:
        """As in ParameterGroups, where it raises no exception."""
        fine = torch.stack([torch.isfinite(update.grad).all() for update in updates.values()]).all()
        before = fine.new_zeros((), dtype=torch.int64) if self._skipped is None else self._skipped
        self._skipped = before + (~fine | (before > 0))
        changed = [tensor for update in updates.values() for tensor in (update.rows, *update.state.values())]
        kept = [tensor.clone() for tensor in changed]
        self._groups.move_(updates, factor, step)
        for tensor, old in zip(changed, kept, strict=True):
            torch.where(self._skipped > 0, old, tensor, out=tensor)

    def skipped(self) -> int:
        """Steps skipped since the last call; the host waits for them."""
        skipped: Tensor | None = self._skipped
        self._skipped = None
        return 0 if skipped is None else int(skipped)
