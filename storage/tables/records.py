"""Record layout: a record is a row followed by its optimizer state, so that one transfer moves both.

The size of a record is a multiple of 128 bytes, the size of a GPU memory transaction. Fields start at
multiples of 16 bytes, the widest load of a thread. A state with one number per row is called a row scalar.
Row scalars are not part of records but stay on the device, because in a record they would take another 128
bytes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

ALIGN, FIELD_ALIGN = 128, 16
ROWS = "rows"
NARROW = (torch.float16, torch.bfloat16)  # stored types; computations use float32
_DROPPED = {torch.bfloat16: 16, torch.float16: 13}  # number of fraction bits of float32 that the type lacks
# float16: smallest normal number, distance of subnormal numbers, largest number
_HALF_NORMAL, _HALF_QUANTUM, _LARGEST = 2.0**-14, 2.0**-24, 65504.0


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """Returns the type for arithmetic and checkpoints of values stored as ``dtype``: float32 if narrow."""
    return torch.float32 if dtype in NARROW else dtype


def to_compute_dtype(values: Tensor) -> Tensor:
    """Converts stored values to the type for arithmetic."""
    return values.to(compute_dtype(values.dtype))


@dataclass(frozen=True)
class Field:
    """Part of a record: the row (ROWS) or a state, stored as ``dtype`` from byte ``start``."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    start: int

    @property
    def nbytes(self) -> int:
        """Size of the field in one record, in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Records:
    """Record layout: its fields (rows first), its size in bytes, and the names of row scalars."""

    fields: tuple[Field, ...]
    width: int
    row_scalars: tuple[str, ...]

    @staticmethod
    def lay_out(
        row: Tensor, state: Mapping[str, Tensor], row_type: torch.dtype, state_type: torch.dtype
    ) -> "Records":
        """Lays out the records of a table.

        Args:
            row: Example rows, float32 (any, dim).
            state: Optimizer state of the example rows, by name.
            row_type: Stored type of rows.
            state_type: Stored type of float32 states with the shape of rows.
        """
        fields, start, row_scalars = [], 0, []
        for name, tensor in {ROWS: row, **state}.items():
            shape = tuple(tensor.shape[1:])
            if name != ROWS and math.prod(shape) == 1:
                row_scalars.append(name)
                continue
            float_type = row_type if name == ROWS else state_type
            fields.append(
                Field(name, shape, float_type if tensor.dtype == torch.float32 else tensor.dtype, start)
            )
            start = -(-(start + fields[-1].nbytes) // FIELD_ALIGN) * FIELD_ALIGN
        return Records(tuple(fields), -(-start // ALIGN) * ALIGN, tuple(row_scalars))

    def view(self, records: Tensor, field: Field) -> Tensor:
        """Views a field of records, uint8 (any, width), in the type of the field: (any, *shape)."""
        part = records[:, field.start : field.start + field.nbytes]
        return part.view(field.dtype).unflatten(1, field.shape)

    def views(self, records: Tensor) -> dict[str, Tensor]:
        """Returns views of all fields by name; writing to a view changes the records."""
        return {field.name: self.view(records, field) for field in self.fields}


def noise(ids: Tensor, columns: int, seed: int, step: int) -> Tensor:
    """Returns 16 random bits per entry, int32 (rows, columns), by splitmix64 (Steele et al., OOPSLA 2014).

    We differ: ``>>`` is a signed shift, because torch has no unsigned shift, so a number and its complement
    give the same bits. Rounding is nevertheless unbiased (tests/storage/tables/test_rounding.py).
    """
    row = _mix(ids * -7046029254386353131 + ((step << 32) + seed))  # odd factor: distinct ids stay distinct
    column = torch.arange(columns, device=ids.device) * -3335678366873096957
    return (_mix(row.unsqueeze(1) + column) >> 40).bitwise_and_(0xFFFF).to(torch.int32)


def _mix(bits: Tensor) -> Tensor:  # two rounds of the finalizer of splitmix64, with int64 overflow
    bits = bits.bitwise_xor(bits >> 30).mul_(-4658895280553007687)
    bits = bits.bitwise_xor(bits >> 27).mul_(-7723592293110705685)
    return bits.bitwise_xor(bits >> 31)


def round_(values: Tensor, dtype: torch.dtype, ids: Tensor, seed: int, step: int) -> Tensor:
    """Rounds float32 values (rows, columns) of the table rows ``ids`` stochastically to ``dtype``.

    A value between two numbers of ``dtype`` is rounded up with a probability equal to its relative distance
    from the lower number (Gupta et al., ICML 2015, section 3.1). Rounding to nearest would lose updates
    smaller than half the distance between two numbers. The random bits are a hash of (seed, step, row,
    column), so the result does not depend on where the row is stored or whether the run was resumed.
    Infinities and NaN are preserved. Values too large for float16 become its largest number.
    """
    if dtype not in _DROPPED:
        return values.to(dtype)
    dropped_bits = _DROPPED[dtype]
    chance = noise(ids, values.shape[1], seed, step)
    bits = values.contiguous().view(torch.int32)
    normal = ((bits + (chance >> (16 - dropped_bits))) & -(1 << dropped_bits)).view(torch.float32)
    if dtype == torch.float16:  # subnormal numbers are equally spaced
        subnormal = torch.floor(values / _HALF_QUANTUM + chance / 65536.0) * _HALF_QUANTUM
        normal = torch.where(values.abs() < _HALF_NORMAL, subnormal, normal).clamp_(-_LARGEST, _LARGEST)
    return torch.where(values.isfinite(), normal, values).to(dtype)
