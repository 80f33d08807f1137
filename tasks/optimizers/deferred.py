"""Checks on a GPU whether gradients are finite, without host synchronization.

If the host checked the gradients, it would have to wait for the GPU in every step, and the GPU would run out
of work. Therefore, the GPU checks them. After the first non-finite gradient, no step changes anything until
the host asks for the number of skipped steps.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from tasks.optimizers.base import ParameterUpdate
from tasks.optimizers.parameter_groups import ParameterGroups


class DeferredCheck:
    """Updates parameters, unless a gradient of this step or of an earlier step is not finite.

    A step that does not update parameters is a skipped step.

    Args:
        groups: Parameter groups. Their settings must have no tuner, because a tuner reads gradients.
    """

    def __init__(self, groups: ParameterGroups) -> None:
        self._groups, self._skipped_steps = groups, None

    def update_(self, updates: Mapping[str, ParameterUpdate], factor: float, step: int) -> None:
        """Updates parameters like ParameterGroups.update_, or skips the step if a gradient is not finite."""
        is_finite = torch.stack([torch.isfinite(update.grad).all() for update in updates.values()]).all()
        skipped_count = self._skipped_steps
        if skipped_count is None:
            skipped_count = is_finite.new_zeros((), dtype=torch.int64)
        self._skipped_steps = skipped_count + (~is_finite | (skipped_count > 0))
        tensors = [tensor for update in updates.values() for tensor in (update.rows, *update.state.values())]
        copies = [tensor.clone() for tensor in tensors]
        self._groups.update_finite_(updates, factor, step)
        for tensor, copy in zip(tensors, copies, strict=True):
            torch.where(self._skipped_steps > 0, copy, tensor, out=tensor)

    def pop_skipped_steps(self) -> int:
        """Returns the number of steps that were skipped since the last call. Waits for the GPU."""
        skipped_steps: Tensor | None = self._skipped_steps
        self._skipped_steps = None
        return 0 if skipped_steps is None else int(skipped_steps)
