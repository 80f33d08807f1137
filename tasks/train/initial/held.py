"""Rows that do not start by chance, and how training holds them to where they started.

A held row takes ``freedom`` of each step (0: none at all), and with ``pull`` λ its gradient gets λ · (row − start), the
gradient of λ/2 · ‖row − start‖². As everywhere, only rows that a step touches are pulled in it.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Held:
    """What training asks about held rows.

    Args:
        ids: int64 (held,), rising: which rows.
        starts: float32 (held, dim): where they started.
        freedom: Share of a step that they take, 0 to 1.
        pull: λ above, 0 or more.
    """

    def __init__(self, ids: Tensor, starts: Tensor, freedom: float, pull: float) -> None:
        self.ids, self.starts, self.freedom, self.pull = ids, starts, freedom, pull

    @staticmethod
    def nothing() -> Held:
        """No row is held."""
        return Held(torch.zeros(0, dtype=torch.int64), torch.zeros(0, 0), 1.0, 0.0)

    def weigh_(self, weights: Tensor) -> None:
        """Scales the steps of held rows, in place: float32 (tokens, 1)."""
        weights[self.ids] *= self.freedom

    def pull_(self, grad: Tensor, rows: Tensor, ids: Tensor) -> None:
        """Adds the pull to the gradients of the held rows among those of a step, in place.

        Args:
            grad: (unique, dim).
            rows: (unique, dim).
            ids: int64 (unique,), rising: the rows' numbers.
        """
        if not self.pull or not len(self.ids):
            return
        own, starts = self.ids.to(ids.device), self.starts
        place = torch.searchsorted(own, ids).clamp_(max=len(own) - 1)
        held = (own[place] == ids).nonzero().squeeze(1)  # (those of the step,)
        away = rows[held] - starts[place[held].to(starts.device)].to(rows.device)
        grad.index_add_(0, held, away, alpha=self.pull)
