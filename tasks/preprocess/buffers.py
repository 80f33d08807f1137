"""A batch's tensors in one block of bytes: workers write into memory that is shared and used again, nothing is pickled.

A batch is a tensor, or a NamedTuple of batches; anything else in it (a number, None) travels as it is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

ALIGNED = 64  # bytes: a cache line, and a multiple of every element's size


@dataclasses.dataclass(frozen=True)
class Place:
    """Where in a block a tensor is."""

    begin: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def end(self) -> int:
        """First byte behind it."""
        return self.begin + math.prod(self.shape) * self.dtype.itemsize


def lay_out(batch: Any) -> tuple[Any, int]:
    """The batch with a Place for every tensor, and the bytes that all of them take."""
    used = 0

    def place(tensor: Tensor) -> Place:
        nonlocal used
        found = Place(used, tuple(tensor.shape), tensor.dtype)
        used = -(-found.end // ALIGNED) * ALIGNED
        return found

    return _each(place, Tensor, batch), used


def write(batch: Any, places: Any, block: Tensor) -> None:
    """Copies a batch's tensors to their places.

    Args:
        batch: Tensors on the CPU.
        places: What ``lay_out(batch)`` said.
        block: uint8, as many bytes as that said, or more.
    """
    if isinstance(places, Place):
        _view(block, places).copy_(batch)
    elif isinstance(places, tuple):
        for part, place in zip(batch, places, strict=True):
            write(part, place, block)


def read(places: Any, block: Tensor) -> Any:
    """The batch, its tensors being views of the block."""
    return _each(lambda place: _view(block, place), Place, places)


def owned(places: Any, used: int, block: Tensor, pin: bool) -> Any:
    """The batch in memory of its own, by one copy; pinned, so that a copy to the GPU need not be waited for, if asked."""
    return read(places, torch.empty(used, dtype=torch.uint8, pin_memory=pin).copy_(block[:used]))


def pinned(batch: Any) -> Any:
    """The batch in one pinned block of its own."""
    places, used = lay_out(batch)
    block = torch.empty(used, dtype=torch.uint8, pin_memory=True)
    write(batch, places, block)
    return read(places, block)


def _view(block: Tensor, place: Place) -> Tensor:
    return block[place.begin : place.end].view(place.dtype).view(place.shape)


def _each(change: Callable[[Any], Any], kind: type, value: Any) -> Any:
    """The same nest of NamedTuples, with every value of a kind changed."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, tuple):
        return type(value)(*(_each(change, kind, part) for part in value))
    return value
