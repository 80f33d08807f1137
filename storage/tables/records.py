"""Defines the layout of records. A record is an embedding row followed by its optimizer state.

One transfer therefore copies both. The size of a record is a multiple of 128 bytes, the size of a GPU memory
transaction. The fields of a record start at multiples of 16 bytes, the widest load of a GPU thread.

A state with one number per row is called a row scalar. Row scalars are not part of records but stay on the
device, because they could make a record 128 bytes larger.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

RECORD_ALIGN_BYTES, FIELD_ALIGN_BYTES = 128, 16
ROW_FIELD = "rows"  # name of the field with the row
NARROW_DTYPES = (torch.float16, torch.bfloat16)  # types of stored values; computations use float32
# For each narrow type: number of fraction bits of float32 that the type lacks.
_DROPPED_BITS = {torch.bfloat16: 16, torch.float16: 13}
_FLOAT16_SMALLEST_NORMAL, _FLOAT16_LARGEST = 2.0**-14, 65504.0
_FLOAT16_SUBNORMAL_STEP = 2.0**-24  # distance of neighbouring subnormal numbers


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """Returns the type that computations and checkpoints use for stored values of type ``dtype``.

    It is float32 for float16 and bfloat16, and otherwise ``dtype`` itself.
    """
    return torch.float32 if dtype in NARROW_DTYPES else dtype


def to_compute_dtype(values: Tensor) -> Tensor:
    """Converts stored values to the type that computations use (``compute_dtype``)."""
    return values.to(compute_dtype(values.dtype))


@dataclass(frozen=True)
class Field:
    """Part of a record: the row or one optimizer state.

    Attributes:
        name: ROW_FIELD, or the name of the state.
        shape: Shape of the value of one row.
        dtype: Type in which the value is stored.
        start: Offset in the record, in bytes.
    """

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    start: int

    @property
    def nbytes(self) -> int:
        """Number of bytes of the field in a record."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Records:
    """Layout of the records of a table.

    Attributes:
        fields: Fields of a record; the first field is the row.
        width: Size of a record in bytes.
        row_scalars: Names of the optimizer states that are stored outside the records: one number per row.
    """

    fields: tuple[Field, ...]
    width: int
    row_scalars: tuple[str, ...]

    @staticmethod
    def lay_out(
        rows: Tensor, state: Mapping[str, Tensor], row_dtype: torch.dtype, state_dtype: torch.dtype
    ) -> "Records":
        """Computes the layout of the records of a table.

        Args:
            rows: Example rows, float32 (any, dim).
            state: Optimizer state of the example rows, by name.
            row_dtype: Type in which rows are stored.
            state_dtype: Type in which float32 states with the shape of rows are stored.
        """
        fields, start, row_scalars = [], 0, []
        for name, tensor in {ROW_FIELD: rows, **state}.items():
            shape = tuple(tensor.shape[1:])
            if name != ROW_FIELD and math.prod(shape) == 1:
                row_scalars.append(name)
                continue
            float_dtype = row_dtype if name == ROW_FIELD else state_dtype
            dtype = float_dtype if tensor.dtype == torch.float32 else tensor.dtype
            fields.append(Field(name, shape, dtype, start))
            start = round_up(start + fields[-1].nbytes, FIELD_ALIGN_BYTES)
        return Records(tuple(fields), round_up(start, RECORD_ALIGN_BYTES), tuple(row_scalars))

    def view(self, records: Tensor, field: Field) -> Tensor:
        """Returns a view of one field of records, uint8 (any, width), in its type: (any, *shape)."""
        field_bytes = records[:, field.start : field.start + field.nbytes]
        return field_bytes.view(field.dtype).unflatten(1, field.shape)

    def views(self, records: Tensor) -> dict[str, Tensor]:
        """Returns views of all fields of records by name; writing to a view changes the records."""
        return {field.name: self.view(records, field) for field in self.fields}


def round_up(size: int, multiple: int) -> int:
    """Returns the smallest multiple of ``multiple`` that is at least ``size``."""
    return -(-size // multiple) * multiple


def random_bits(ids: Tensor, columns: int, seed: int, step: int) -> Tensor:
    """Returns 16 random bits per element of the rows ``ids`` of a table: int32 (ids, columns).

    The bits are a hash of seed, step, row and column by splitmix64 (Steele et al., OOPSLA 2014). We differ:
    ``>>`` is a signed shift, because torch has no unsigned shift, so a number and its complement give the
    same bits. Rounding is nevertheless unbiased (tests/storage/tables/test_rounding.py).
    """
    row_bits = _mix(ids * -7046029254386353131 + ((step << 32) + seed))  # distinct, because the factor is odd
    column_bits = torch.arange(columns, device=ids.device) * -3335678366873096957
    return (_mix(row_bits.unsqueeze(1) + column_bits) >> 40).bitwise_and_(0xFFFF).to(torch.int32)


def _mix(bits: Tensor) -> Tensor:
    """Computes two rounds of the finalizer of splitmix64, with int64 overflow."""
    bits = bits.bitwise_xor(bits >> 30).mul_(-4658895280553007687)
    bits = bits.bitwise_xor(bits >> 27).mul_(-7723592293110705685)
    return bits.bitwise_xor(bits >> 31)


def quantize(values: Tensor, dtype: torch.dtype, ids: Tensor, seed: int, step: int) -> Tensor:
    """Rounds float32 values (rows, columns) of the table rows ``ids`` stochastically to ``dtype``.

    A value between two numbers of ``dtype`` is rounded up with a probability equal to its relative distance
    from the lower number (Gupta et al., ICML 2015, section 3.1). Rounding to nearest would lose updates
    that are smaller than half the distance between two numbers. The random bits are a hash of seed, step, row
    and column, so the result does not depend on where the row is stored or whether the run was resumed.
    Infinities and NaN are preserved. Values too large for float16 become the largest number of float16.
    """
    if dtype not in _DROPPED_BITS:
        return values.to(dtype)
    dropped_bits = _DROPPED_BITS[dtype]
    bits_to_add = random_bits(ids, values.shape[1], seed, step)
    value_bits = values.contiguous().view(torch.int32)
    rounded_bits = (value_bits + (bits_to_add >> (16 - dropped_bits))) & -(1 << dropped_bits)
    rounded_values = rounded_bits.view(torch.float32)
    if dtype == torch.float16:  # the distance of subnormal numbers is constant
        subnormal_steps = torch.floor(values / _FLOAT16_SUBNORMAL_STEP + bits_to_add / 65536.0)
        is_subnormal = values.abs() < _FLOAT16_SMALLEST_NORMAL
        rounded_values = torch.where(is_subnormal, subnormal_steps * _FLOAT16_SUBNORMAL_STEP, rounded_values)
        rounded_values = rounded_values.clamp_(-_FLOAT16_LARGEST, _FLOAT16_LARGEST)
    return torch.where(values.isfinite(), rounded_values, values).to(dtype)
