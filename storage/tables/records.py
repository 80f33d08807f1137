"""The record of a row: its weight and its optimizer state side by side, so that one transfer moves both.

A record is ``width`` bytes, a multiple of 128, so that every record begins a memory transaction of the GPU; its fields
begin at multiples of 16 bytes, the widest load of a GPU thread. A state of one number a row is no field of it: four
bytes a row stay on the device for the whole table, which saves the record a quarter of its size at 128 dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

ALIGN, FIELD_ALIGN = 128, 16
ROWS = "rows"
NARROW = (torch.float16, torch.bfloat16)  # stored so, computed with as float32


def full_type(dtype: torch.dtype) -> torch.dtype:
    """In which a stored type is computed with and saved: float32 for narrower ones, a rule's own for others."""
    return torch.float32 if dtype in NARROW else dtype


def full(values: Tensor) -> Tensor:
    """Stored values as they are computed with."""
    return values.to(full_type(values.dtype))


@dataclass(frozen=True)
class Field:
    """One tensor's part of every record.

    Attributes:
        name: ROWS, or the state's.
        shape: Of one row.
        dtype: In which it is stored.
        start: First byte within the record.
    """

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    start: int

    @property
    def stop(self) -> int:
        """Byte behind the last."""
        return self.start + math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Records:
    """Which fields a record has, and which states stay whole on the device.

    Attributes:
        fields: Of the record, rows first.
        width: Bytes of a record.
        wide: Names of the states of one number a row.
    """

    fields: tuple[Field, ...]
    width: int
    wide: tuple[str, ...]

    @staticmethod
    def of(row: Tensor, state: Mapping[str, Tensor], row_dtype: torch.dtype, state_dtype: torch.dtype) -> Records:
        """The record of a table.

        Args:
            row: Some rows of it, float32 (any, dim).
            state: Their state.
            row_dtype: In which rows are stored.
            state_dtype: In which states with a row's shape are stored; others keep their own type.
        """
        fields, start, wide = [], 0, []
        for name, tensor in {ROWS: row, **state}.items():
            shape = tuple(tensor.shape[1:])
            if name != ROWS and math.prod(shape) == 1:
                wide.append(name)
                continue
            narrow = row_dtype if name == ROWS else state_dtype
            fields.append(Field(name, shape, narrow if tensor.dtype == torch.float32 else tensor.dtype, start))
            start = -(-fields[-1].stop // FIELD_ALIGN) * FIELD_ALIGN
        return Records(tuple(fields), -(-start // ALIGN) * ALIGN, tuple(wide))

    def bytes_on_device(self) -> int:
        """Bytes that a cached row takes there, without the padding of the record."""
        return sum(field.stop - field.start for field in self.fields)

    def view(self, records: Tensor, field: Field) -> Tensor:
        """That field of records, uint8 (any, width), in its own type: (any, *shape)."""
        return records[:, field.start : field.stop].view(field.dtype).unflatten(1, field.shape)

    def unpack(self, records: Tensor, cells: Mapping[str, Tensor], slots: Tensor) -> None:
        """Puts records into a cache: ``cells[name]`` (slots, *shape) at ``slots``."""
        for field in self.fields:
            cells[field.name].index_copy_(0, slots, self.view(records, field))

    def pack(self, cells: Mapping[str, Tensor], slots: Tensor, records: Tensor) -> None:
        """Copies rows of a cache into records; the padding keeps what it held."""
        for field in self.fields:
            self.view(records, field).copy_(cells[field.name].index_select(0, slots))
