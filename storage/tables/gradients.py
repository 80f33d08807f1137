"""Collects the gradients of gathered rows until a step applies them."""

import torch
from torch import Tensor

from storage.tables.segment_sums import segment_sum


class RowGradients:
    """Collects the rows that receive a gradient. Rows without a gradient are freed with their graph."""

    def __init__(self) -> None:
        self._leaves: dict[int, tuple[Tensor, Tensor]] = {}  # ids and rows of each leaf with a gradient

    def __bool__(self) -> bool:
        return bool(self._leaves)

    def track(self, ids: Tensor, rows: Tensor) -> None:
        """Makes gathered rows, (unique, dim), a leaf tensor, which is collected when it gets a gradient."""
        leaves = self._leaves  # without a reference to self, which would keep the graph alive
        rows.requires_grad_().register_post_accumulate_grad_hook(
            lambda leaf: leaves.__setitem__(id(leaf), (ids, leaf))
        )

    @torch.no_grad()
    def merged(self) -> list[tuple[Tensor, Tensor]]:
        """Returns at most one pair: distinct ids, and rows whose ``grad`` is the sum of all gradients."""
        if len(self._leaves) > 1:
            parts = [(ids, rows.grad) for ids, rows in self._leaves.values() if rows.grad is not None]
            ids, positions = torch.unique(torch.cat([ids for ids, _ in parts]), return_inverse=True)
            grad = segment_sum(torch.cat([grad for _, grad in parts]), positions, len(ids))
            self.clear()
            rows = grad.new_zeros(1, 1).expand_as(grad).requires_grad_()  # only its gradient is used
            rows.grad = grad
            self._leaves[id(rows)] = ids, rows
        return [(ids, rows) for ids, rows in self._leaves.values() if rows.grad is not None]

    def clear(self) -> None:
        """Discards all gradients."""
        for _, rows in self._leaves.values():
            rows.grad = None
        self._leaves.clear()
