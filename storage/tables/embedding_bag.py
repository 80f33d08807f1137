"""``nn.EmbeddingBag`` for tables larger than GPU memory."""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from storage.tables.embedding import OffloadedEmbedding
from storage.tables.segment_sums import segment_sum

Mode = Literal["sum", "mean", "max"]


class OffloadedEmbeddingBag(OffloadedEmbedding):
    """Sums, averages or maximizes rows per bag. Rows and optimizer state are outside of device memory.

    Args:
        mode: "sum", "mean" or "max".
        include_last_offset: Whether ``offsets`` ends with the number of ids.
        arguments: Positional arguments of ``OffloadedEmbedding``.
        options: Other arguments of ``OffloadedEmbedding``. Bags do not contain ids equal to ``padding_idx``.
    """

    def __init__(
        self, *arguments: int, mode: Mode = "mean", include_last_offset: bool = False, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.mode: Mode = mode
        self.include_last_offset = include_last_offset

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, ids: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """Returns a vector per bag, (bags, embedding_dim), on the device.

        Args:
            ids: Ids of bags of equal size, (bags, size), or of all bags, (any,).
            offsets: Start of each bag in ``ids`` of one dimension, (bags,).
            per_sample_weights: Factor of each id, of the shape of ``ids``; only with mode "sum".

        Raises:
            ValueError: ``offsets`` is missing for ids of one dimension, or given for bags of equal size.
        """
        device = self.table.device
        if (offsets is None) != (ids.ndim == 2):
            shape = tuple(ids.shape)
            raise ValueError(
                f"ids of shape {shape}: pass (bags, size) without offsets, or (any,) with offsets"
            )
        if offsets is None:
            offsets = bounds_of_equal_bags(ids)
        elif not self.include_last_offset:
            offsets = F.pad(offsets, (0, 1), value=ids.numel())
        rows, positions = self._rows_of(ids.to(device, torch.int64).flatten())
        weights = None if per_sample_weights is None else per_sample_weights.to(device).flatten()
        bounds = offsets.to(device, torch.int64)
        return pool_rows(rows, positions, bounds, self.mode, weights, self._padding_position)


def bounds_of_equal_bags(ids: Tensor) -> Tensor:
    """Returns the offsets of bags of equal size, (bags, size), in the flattened ids: int64 (bags + 1,)."""
    bags, size = ids.shape
    return torch.arange(bags + 1, device=ids.device) * size


def pool_rows(
    rows: Tensor, positions: Tensor, bounds: Tensor, mode: Mode, weights: Tensor | None, padding: int = -1
) -> Tensor:
    """Pools rows per bag: (bags, dim). The gradient of sums and means is bitwise reproducible.

    The gradient of ``F.embedding_bag``, in contrast, is summed in an order that depends on other rows.

    Args:
        rows: Distinct rows, (unique, dim).
        positions: Row of each entry, int64 (entries,).
        bounds: Offsets of bags in the entries, int64 (bags + 1,).
        mode: Kind of pooling.
        weights: Factor of each entry, (entries,); only with mode "sum".
        padding: Row to leave out; -1: none.
    """
    if mode == "max":
        options = {"mode": mode, "include_last_offset": True}
        return F.embedding_bag(
            positions, rows, bounds, padding_idx=padding if padding >= 0 else None, **options
        )
    return _Pool.apply(rows, positions, bounds, mode, weights, padding)


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor, positions: Tensor, bounds: Tensor, mode: Mode, weights: Any, padding: int):
        ctx.mode, ctx.padding = mode, padding
        ctx.save_for_backward(rows, positions, bounds, weights)
        options = {"mode": mode, "include_last_offset": True, "per_sample_weights": weights}
        return F.embedding_bag(
            positions, rows, bounds, padding_idx=padding if padding >= 0 else None, **options
        )

    @staticmethod
    def backward(ctx, *grads: Tensor) -> Any:
        rows, positions, bounds, weights = ctx.saved_tensors
        grad, bags = grads[0].contiguous(), torch.arange(len(bounds) - 1, device=bounds.device)
        bag_of = bags.repeat_interleave(bounds.diff(), output_size=len(positions))
        factors = (positions != ctx.padding).to(rows.dtype)
        for_weights = None
        if ctx.needs_input_grad[4]:
            for_weights = (grad[bag_of] * rows[positions]).sum(1) * factors
        if weights is not None:
            factors = factors * weights
        if ctx.mode == "mean":
            counts = factors.new_zeros(len(bags)).index_add_(0, bag_of, factors)
            factors = factors / counts.clamp(min=1)[bag_of]
        for_rows = segment_sum(grad, positions, len(rows), rows=bag_of, weights=factors)
        return for_rows, None, None, None, for_weights, None
