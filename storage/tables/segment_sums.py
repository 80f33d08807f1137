"""Computes bitwise-reproducible sums of segments (groups of entries) without host synchronization."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

MAX_PIECE = 128  # maximum number of entries that one GPU thread sums


def count_entries(segment_ids: Tensor, num_segments: int) -> Tensor:
    """Counts the entries of each segment: int64 (num_segments,).

    ``segment_ids`` has the segment of each entry, int64 (entries,). Unlike torch.bincount, this function does
    not synchronize with a GPU.
    """
    return segment_ids.new_zeros(num_segments).index_add_(0, segment_ids, torch.ones_like(segment_ids))


def segment_offsets(segment_ids: Tensor, num_segments: int) -> Tensor:
    """Returns the start of each segment in entries sorted by segment, and the number of entries.

    The result is int64 (num_segments + 1,).
    """
    return F.pad(count_entries(segment_ids, num_segments).cumsum(0), (1, 0))


def sum_bags(rows: Tensor, ids: Tensor, offsets: Tensor, weights: Tensor | None = None) -> Tensor:
    """Computes the weighted sum of rows[ids] for each bag: (bags, dim).

    On a GPU, one thread sums one column of a bag. Long bags are split into pieces of at most MAX_PIECE
    entries, and a second pass sums the pieces. The number of pieces depends on shapes only, so the host does
    not have to wait for the device.

    Args:
        rows: Rows to sum, (any, dim).
        ids: Index in ``rows`` of each entry of a bag, int64 (entries,).
        offsets: Start of each bag in the entries, and the number of entries, int64 (bags + 1,).
        weights: Factor of each entry, (entries,); None: 1.
    """
    if rows.device.type == "cpu":
        return embedding_bag(rows, ids, offsets, weights)
    piece_begins = torch.arange(0, len(ids), MAX_PIECE, device=ids.device)
    piece_offsets = torch.cat([offsets, piece_begins]).sort().values
    piece_sums = embedding_bag(rows, ids, piece_offsets, weights)
    piece_ids = torch.arange(len(piece_sums), device=ids.device)
    return embedding_bag(piece_sums, piece_ids, torch.searchsorted(piece_offsets, offsets))


def segment_sum(
    values: Tensor,
    segment_ids: Tensor,
    num_segments: int,
    *,
    rows: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    """Sums the entries of each segment in a fixed order: (num_segments, dim).

    Args:
        values: Rows to sum, (any, dim).
        segment_ids: Segment of each entry, int64 (entries,).
        num_segments: Number of segments.
        rows: Index in ``values`` of each entry, int64 (entries,); None: entry i has the row values[i].
        weights: Factor of each entry, (entries,); None: 1.
    """
    if segment_ids.device.type == "cpu":  # a radix sort takes a third of the time of torch.sort
        order = torch.from_numpy(stable_order(segment_ids.numpy(), num_segments))
    else:
        order = torch.sort(segment_ids, stable=True).indices
    offsets, rows = segment_offsets(segment_ids, num_segments), order if rows is None else rows.take(order)
    return sum_bags(values, rows, offsets, None if weights is None else weights.take(order))


def take_rows(rows: Tensor, positions: Tensor) -> Tensor:
    """Returns rows[positions], (*positions.shape, dim), with a bitwise-reproducible gradient."""
    return _TakeRows.apply(rows, positions)


class _TakeRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor, positions: Tensor) -> Tensor:
        ctx.save_for_backward(positions)
        ctx.row_count = len(rows)
        return rows.index_select(0, positions.flatten()).view(*positions.shape, rows.shape[1])

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None]:
        (positions,) = ctx.saved_tensors
        grad = grads[0].reshape(-1, grads[0].shape[-1])
        return segment_sum(grad, positions.flatten(), ctx.row_count), None


def stable_order(values: np.ndarray, limit: int) -> np.ndarray:
    """Returns the stable argsort of integers from 0 to ``limit`` - 1, int64 (any,), by a radix sort."""
    order = np.argsort(values.astype(np.uint16), kind="stable")  # NumPy sorts 16-bit integers by radix
    for shift in range(16, (limit - 1).bit_length(), 16):
        order = order.take(np.argsort((values.take(order) >> shift).astype(np.uint16), kind="stable"))
    return order


def embedding_bag(
    rows: Tensor,
    ids: Tensor,
    offsets: Tensor,
    weights: Tensor | None = None,
    *,
    mode: str = "sum",
    padding: int = -1,
) -> Tensor:
    """Calls ``F.embedding_bag``, without pooling the id ``padding`` (-1: all ids are pooled).

    The last element of ``offsets`` is the number of entries.
    """
    return F.embedding_bag(
        ids,
        rows,
        offsets,
        mode=mode,
        per_sample_weights=weights,
        include_last_offset=True,
        padding_idx=padding if padding >= 0 else None,
    )
