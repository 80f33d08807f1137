"""Stochastic rounding: a number between two float16 (or bfloat16) ones becomes the upper one as often as it is near it.

Rounding to the nearest loses every step shorter than half the distance of two neighbours, so training stands still;
stochastically rounded, the steps are right on average. Chance is a hash of (seed, step, row, column), so a row is
rounded alike wherever it lives, and a resumed run goes on with the same bits.

References:
    Gupta, Agrawal, Gopalakrishnan, Narayanan. Deep Learning with Limited Numerical Precision. ICML 2015, section 3.1.
    https://arxiv.org/abs/1502.02551
    The hash follows the finalizer of splitmix64: Steele, Lea, Flood. Fast Splittable Pseudorandom Number Generators. OOPSLA 2014.
"""

from __future__ import annotations

import torch
from torch import Tensor

_DROPPED = {torch.bfloat16: 16, torch.float16: 13}  # bits of float32's fraction that the type has not
_HALF_NORMAL, _HALF_QUANTUM, _HALF_LARGEST = 2.0**-14, 2.0**-24, 65504.0


def noise(ids: Tensor, columns: int, seed: int, step: int) -> Tensor:
    """Sixteen random bits an element: int32 (rows, columns), from int64 ``ids`` (rows,)."""
    row = _mix(ids * -7046029254386353131 + ((step << 32) + seed))  # odd: distinct ids stay distinct
    column = torch.arange(columns, device=ids.device) * -3335678366873096957
    return (_mix(row.unsqueeze(1) + column) >> 40).bitwise_and_(0xFFFF).to(torch.int32)


def _mix(bits: Tensor) -> Tensor:
    """Two rounds of splitmix64's finalizer, on int64 (which wraps)."""
    bits = bits.bitwise_xor(bits >> 30).mul_(-4658895280553007687)
    bits = bits.bitwise_xor(bits >> 27).mul_(-7723592293110705685)
    return bits.bitwise_xor(bits >> 31)


def round_(values: Tensor, dtype: torch.dtype, ids: Tensor, seed: int, step: int) -> Tensor:
    """Values in a narrower type.

    Args:
        values: float32 (rows, columns).
        dtype: float32 (nothing is done), float16 or bfloat16.
        ids: int64 (rows,): which rows of the table they are.
        seed: Of all rounding of one tensor of one table.
        step: Of the write-back.

    Returns:
        The same shape. Infinite and undefined values stay what they are; what is too large for float16 becomes its
        largest number.
    """
    if dtype not in _DROPPED:
        return values.to(dtype)
    dropped = _DROPPED[dtype]
    chance = noise(ids, values.shape[1], seed, step)
    bits = values.contiguous().view(torch.int32)
    rounded = ((bits + (chance >> (16 - dropped))) & -(1 << dropped)).view(torch.float32)
    if dtype == torch.float16:  # below its normal numbers the neighbours are equally far everywhere
        small = torch.floor(values / _HALF_QUANTUM + chance / 65536.0) * _HALF_QUANTUM
        rounded = torch.where(values.abs() < _HALF_NORMAL, small, rounded).clamp_(-_HALF_LARGEST, _HALF_LARGEST)
    return torch.where(values.isfinite(), rounded, values).to(dtype)
