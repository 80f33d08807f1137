"""Sums by place whose bits repeat, on every device, and for which the host never waits."""

import torch
from torch import Tensor
from torch.nn import functional as F

LONGEST = 128  # values that one thread of a GPU adds up


def count(places: Tensor, size: int) -> Tensor:
    """How often each of ``size`` places occurs, int64 (size,); for torch.bincount the host waits."""
    return places.new_zeros(size).index_add_(0, places, torch.ones_like(places))


def starts_of(places: Tensor, size: int) -> Tensor:
    """Where each place's values begin once they are sorted by place, and the end: int64 (size + 1,)."""
    return F.pad(count(places, size).cumsum(0), (1, 0))


def sum_bags(rows: Tensor, ids: Tensor, starts: Tensor, weights: Tensor | None = None) -> Tensor:
    """Sums the rows of ``ids``, times ``weights``, bag by bag: (bags, dim).

    A GPU adds each column of a bag in one thread: it gets pieces of at most LONGEST values, at bounds of bags
    and at every multiple of LONGEST, and adds the pieces in a second pass. The number of pieces does not
    depend on values, so that the host need not wait for it.
    """
    if rows.device.type == "cpu":
        return _embedding_bag(rows, ids, starts, weights)
    cuts = torch.arange(0, len(ids), LONGEST, device=ids.device)
    bounds = torch.cat([starts, cuts]).sort().values
    pieces = _embedding_bag(rows, ids, bounds, weights)
    numbers = torch.arange(len(pieces), device=ids.device)
    return _embedding_bag(pieces, numbers, torch.searchsorted(bounds, starts))


def add_up(values: Tensor, places: Tensor, size: int) -> Tensor:
    """Sums values (any, dim) by place, int64 (any,), in order: (size, dim)."""
    order = torch.sort(places, stable=True).indices
    return sum_bags(values, order, starts_of(places, size))


def _embedding_bag(rows: Tensor, ids: Tensor, starts: Tensor, weights: Tensor | None = None) -> Tensor:
    about = {"mode": "sum", "include_last_offset": True}
    return F.embedding_bag(ids, rows, starts, per_sample_weights=weights, **about)
