"""``nn.EmbeddingBag`` for tables larger than GPU memory."""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from storage.tables.embedding import OffloadedEmbedding
from storage.tables.segment_sums import embedding_bag, segment_sum

Mode = Literal["sum", "mean", "max"]


class OffloadedEmbeddingBag(OffloadedEmbedding):
    """Computes the sum, mean or maximum of the rows of each bag, like ``nn.EmbeddingBag``.

    Rows and optimizer state are in host memory or a file, as in ``OffloadedEmbedding``.

    Args:
        mode: "sum", "mean" or "max".
        include_last_offset: Whether the last element of ``offsets`` is the number of ids.
        arguments: Positional arguments of ``OffloadedEmbedding``.
        options: Other arguments of ``OffloadedEmbedding``. Ids equal to ``padding_idx`` are not pooled.
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
        """Returns a vector per bag: (bags, embedding_dim), on the device.

        Args:
            ids: Ids of bags of equal size, (bags, size), or the concatenated ids of all bags, (any,).
            offsets: Start of each bag in the concatenated ids, (bags,); None if ``ids`` is (bags, size).
            per_sample_weights: Factor of each id, of the shape of ``ids``; only with mode "sum".

        Raises:
            ValueError: ``offsets`` is missing for ids of one dimension, or passed with bags of equal size;
                or ``per_sample_weights`` is passed and the mode is not "sum".
        """
        if per_sample_weights is not None and self.mode != "sum":
            raise ValueError(f"per_sample_weights need mode 'sum', got mode {self.mode!r}; omit the weights")
        device = self.table.device
        if (offsets is None) != (ids.ndim == 2):
            shape = tuple(ids.shape)
            raise ValueError(
                f"ids have shape {shape}; pass ids (bags, size) without offsets, or ids (any,) with offsets"
            )
        if offsets is None:
            offsets = compute_equal_bag_offsets(ids)
        elif not self.include_last_offset:
            offsets = F.pad(offsets, (0, 1), value=ids.numel())
        rows, positions = self._gather_distinct_rows(ids.to(device, torch.int64).flatten())
        weights = None if per_sample_weights is None else per_sample_weights.to(device).flatten()
        offsets = offsets.to(device, torch.int64)
        return pool_rows(rows, positions, offsets, self.mode, weights, self._padding_position)


def compute_equal_bag_offsets(ids: Tensor) -> Tensor:
    """Returns the offsets, int64 (bags + 1,), of bags of equal size in their flattened ids, (bags, size)."""
    bags, size = ids.shape
    return torch.arange(bags + 1, device=ids.device) * size


def pool_rows(
    rows: Tensor, positions: Tensor, offsets: Tensor, mode: Mode, weights: Tensor | None, padding: int = -1
) -> Tensor:
    """Pools the rows of each bag: (bags, dim). The gradient of sums and means is bitwise reproducible.

    The gradient of ``F.embedding_bag``, in contrast, is summed in an order that depends on other rows.

    Args:
        rows: Distinct rows, (unique, dim).
        positions: Position in ``rows`` of each entry of a bag, int64 (entries,).
        offsets: Start of each bag in the entries, and the number of entries, int64 (bags + 1,).
        mode: "sum", "mean" or "max".
        weights: Factor of each entry, (entries,); only with mode "sum".
        padding: Position in ``rows`` of the row that is not pooled; -1: all rows are pooled.
    """
    if mode == "max":
        return embedding_bag(rows, positions, offsets, mode=mode, padding=padding)
    return _PoolRows.apply(rows, positions, offsets, mode, weights, padding)


class _PoolRows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx, rows: Tensor, positions: Tensor, offsets: Tensor, mode: Mode, weights: Any, padding: int
    ):
        ctx.mode, ctx.padding = mode, padding
        ctx.save_for_backward(rows, positions, offsets, weights)
        return embedding_bag(rows, positions, offsets, weights, mode=mode, padding=padding)

    @staticmethod
    def backward(ctx, *grads: Tensor) -> Any:
        rows, positions, offsets, weights = ctx.saved_tensors
        grad, bags = grads[0].contiguous(), torch.arange(len(offsets) - 1, device=offsets.device)
        bag_ids = bags.repeat_interleave(offsets.diff(), output_size=len(positions))
        factors = (positions != ctx.padding).to(rows.dtype)
        weights_grad = None
        if ctx.needs_input_grad[4]:
            weights_grad = (grad[bag_ids] * rows[positions]).sum(1) * factors
        if weights is not None:
            factors = factors * weights
        if ctx.mode == "mean":
            bag_sizes = factors.new_zeros(len(bags)).index_add_(0, bag_ids, factors)
            factors = factors / bag_sizes.clamp(min=1)[bag_ids]
        rows_grad = segment_sum(grad, positions, len(rows), rows=bag_ids, weights=factors)
        return rows_grad, None, None, None, weights_grad, None
