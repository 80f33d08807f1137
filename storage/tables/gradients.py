"""Collects the gradients of gathered embedding rows until a step applies them."""

import torch
from torch import Tensor

from storage.tables.segment_sums import segment_sum


class RowGradients:
    """Collects the gathered rows that receive a gradient.

    Gathered rows without a gradient are not referenced here, so they are freed with the autograd graph.
    """

    def __init__(self) -> None:
        # ids and rows of each leaf tensor with a gradient, by the id() of the tensor
        self._leaves: dict[int, tuple[Tensor, Tensor]] = {}

    def __bool__(self) -> bool:
        return bool(self._leaves)

    def track(self, ids: Tensor, rows: Tensor) -> None:
        """Makes gathered rows, (unique, dim), a leaf tensor that is collected when it gets a gradient."""
        leaves = self._leaves  # a reference to self in the hook would keep the graph alive
        rows.requires_grad_().register_post_accumulate_grad_hook(
            lambda leaf: leaves.__setitem__(id(leaf), (ids, leaf))
        )

    @torch.no_grad()
    def merge(self) -> list[tuple[Tensor, Tensor]]:
        """Merges all leaf tensors into one by adding the gradients of equal ids.

        Returns:
            A list of at most one pair: distinct ids, and a leaf tensor with their gradients as ``grad``.
        """
        if len(self._leaves) > 1:
            ids_and_grads = [(ids, rows.grad) for ids, rows in self._leaves.values() if rows.grad is not None]
            ids, positions = torch.unique(torch.cat([ids for ids, _ in ids_and_grads]), return_inverse=True)
            grad = segment_sum(torch.cat([grad for _, grad in ids_and_grads]), positions, len(ids))
            self.clear()
            rows = grad.new_zeros(1, 1).expand_as(grad).requires_grad_()  # only the gradient is used
            rows.grad = grad
            self._leaves[id(rows)] = ids, rows
        return [(ids, rows) for ids, rows in self._leaves.values() if rows.grad is not None]

    def clear(self) -> None:
        """Discards all gradients."""
        for _, rows in self._leaves.values():
            rows.grad = None
        self._leaves.clear()
