"""The record of a row: its weight and its optimizer state side by side, so that one transfer moves both.

Records are multiples of 128 bytes, a memory transaction of the GPU; fields start at multiples of 16, the
widest load of a thread. A state of one number per row is no field: it stays on the device, which saves a
quarter of the record at 128 dimensions.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

ALIGN, FIELD_ALIGN = 128, 16
ROWS = "rows"
NARROW = (torch.float16, torch.bfloat16)  # stored types, computed with as float32
_DROPPED = {torch.bfloat16: 16, torch.float16: 13}  # bits of float32's fraction that the type does not have
_HALF_NORMAL, _HALF_QUANTUM, _LARGEST = 2.0**-14, 2.0**-24, 65504.0


def full_type(dtype: torch.dtype) -> torch.dtype:
    """The type that a stored type is computed with and saved in."""
    return torch.float32 if dtype in NARROW else dtype


def full(values: Tensor) -> Tensor:
    """Stored values in the type they are computed with."""
    return values.to(full_type(values.dtype))


@dataclass(frozen=True)
class Field:
    """One tensor's bytes of every record, from byte ``start``: ROWS or a state, stored as ``dtype``."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    start: int

    @property
    def nbytes(self) -> int:
        """Bytes of one row."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Records:
    """Fields of a record (rows first), its bytes, and the names of the states that stay on the device."""

    fields: tuple[Field, ...]
    width: int
    wide: tuple[str, ...]

    @staticmethod
    def of(
        row: Tensor, state: Mapping[str, Tensor], row_type: torch.dtype, state_type: torch.dtype
    ) -> "Records":
        """The record of a table with such rows, float32 (any, dim); only float32 states are narrowed."""
        fields, start, wide = [], 0, []
        for name, tensor in {ROWS: row, **state}.items():
            shape = tuple(tensor.shape[1:])
            if name != ROWS and math.prod(shape) == 1:
                wide.append(name)
                continue
            stored = row_type if name == ROWS else state_type
            fields.append(
                Field(name, shape, stored if tensor.dtype == torch.float32 else tensor.dtype, start)
            )
            start = -(-(start + fields[-1].nbytes) // FIELD_ALIGN) * FIELD_ALIGN
        return Records(tuple(fields), -(-start // ALIGN) * ALIGN, tuple(wide))

    def view(self, records: Tensor, field: Field) -> Tensor:
        """A field of records, uint8 (any, width), in its own type: (any, *shape)."""
        part = records[:, field.start : field.start + field.nbytes]
        return part.view(field.dtype).unflatten(1, field.shape)

    def views(self, records: Tensor) -> dict[str, Tensor]:
        """Each field of records, by name: writing to it writes to them."""
        return {field.name: self.view(records, field) for field in self.fields}


def noise(ids: Tensor, columns: int, seed: int, step: int) -> Tensor:
    """Sixteen random bits an element, int32 (rows, columns), by splitmix64 (Steele et al., OOPSLA 2014)."""
    row = _mix(ids * -7046029254386353131 + ((step << 32) + seed))  # odd factor: distinct ids stay distinct
    column = torch.arange(columns, device=ids.device) * -3335678366873096957
    return (_mix(row.unsqueeze(1) + column) >> 40).bitwise_and_(0xFFFF).to(torch.int32)


def _mix(bits: Tensor) -> Tensor:  # two rounds of the finalizer, on int64 (which wraps)
    bits = bits.bitwise_xor(bits >> 30).mul_(-4658895280553007687)
    bits = bits.bitwise_xor(bits >> 27).mul_(-7723592293110705685)
    return bits.bitwise_xor(bits >> 31)


def round_(values: Tensor, dtype: torch.dtype, ids: Tensor, seed: int, step: int) -> Tensor:
    """Float32 values (rows, columns) of the table's rows ``ids``, rounded stochastically to ``dtype``.

    Up with probability equal to the distance from the lower neighbour (Gupta et al., ICML 2015, section 3.1):
    to nearest, steps shorter than half the distance of two neighbours are lost. The random bits are a hash of
    (seed, step, row, column), so a row is rounded alike wherever it is stored, and by a resumed run.
    Infinities and NaN are kept; values too large for float16 become its largest number.
    """
    if dtype not in _DROPPED:
        return values.to(dtype)
    dropped = _DROPPED[dtype]
    chance = noise(ids, values.shape[1], seed, step)
    bits = values.contiguous().view(torch.int32)
    rounded = ((bits + (chance >> (16 - dropped))) & -(1 << dropped)).view(torch.float32)
    if dtype == torch.float16:  # below its normal numbers neighbours are equally far apart
        small = torch.floor(values / _HALF_QUANTUM + chance / 65536.0) * _HALF_QUANTUM
        rounded = torch.where(values.abs() < _HALF_NORMAL, small, rounded).clamp_(-_LARGEST, _LARGEST)
    return torch.where(values.isfinite(), rounded, values).to(dtype)
