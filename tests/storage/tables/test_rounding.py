"""Stochastic rounding: unbiased, exact for representable values, and reproducible."""

import pytest
import torch

from storage.tables.records import quantize, random_bits

TYPES = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("value", [1.0001, -0.30007, 3.1e-6, -2.9e-8, 1234.56, 5e-8])
def test_stochastic_rounding_is_unbiased(dtype: torch.dtype, value: float):
    values = torch.full((2000, 16), value)
    rounded = quantize(values, dtype, torch.arange(2000), seed=1, step=3).double()
    down, up = rounded.min(), rounded.max()
    assert down <= value <= up and len(rounded.unique()) == 2  # its two neighbours, no other
    gap = float(up - down)
    assert abs(float(rounded.mean()) - value) < 5 * 0.5 * gap / 32000**0.5 + gap / 4096


@pytest.mark.parametrize("dtype", TYPES)
def test_values_that_the_type_can_represent_stay(dtype: torch.dtype):
    values = (
        torch.cat(
            [
                torch.randn(400),
                torch.randn(400) * 1e-6,
                torch.tensor([0.0, -0.0, torch.inf, -torch.inf, 65504.0, 6e-8]),
            ]
        )
        .to(dtype)
        .float()
        .unsqueeze(1)
    )
    assert torch.equal(quantize(values, dtype, torch.arange(len(values)), 0, 0).float(), values)
    assert quantize(torch.full((1, 1), torch.nan), dtype, torch.arange(1), 0, 0).isnan().all()


def test_values_too_large_for_float16_are_clipped():
    assert quantize(torch.tensor([[1e6, -1e6]]), torch.float16, torch.arange(1), 0, 0).tolist() == [
        [65504.0, -65504.0]
    ]


def test_small_steps_add_up():
    """Two hundred steps of an eighth of the distance of two neighbours: rounding to the nearest would not
    move at all."""
    row = torch.ones(500, 4)
    for step in range(200):
        row = quantize(row + 2.0**-10, torch.bfloat16, torch.arange(500), 7, step).float()
    assert float(row.mean()) == pytest.approx(1 + 200 * 2.0**-10, abs=0.003)
    assert (torch.ones(4) + 2.0**-10).to(torch.bfloat16).eq(1).all()


def test_random_bits_depend_on_the_row_not_on_its_slot():
    values, ids = torch.randn(50, 8), torch.arange(50) * 3
    order = torch.randperm(50, generator=torch.Generator().manual_seed(0))
    first = quantize(values, torch.bfloat16, ids, 1, 2)
    assert torch.equal(quantize(values[order], torch.bfloat16, ids[order], 1, 2), first[order])
    others = [quantize(values, torch.bfloat16, ids, seed, step) for seed, step in ((1, 3), (2, 2))]
    assert all(not torch.equal(first, other) for other in others)


def test_random_bits_are_uniform_and_uncorrelated():
    bits = torch.stack([random_bits(torch.arange(300), 64, 5, step) for step in range(4)]).double() / 65536
    assert float(bits.mean()) == pytest.approx(0.5, abs=0.005) and float(bits.var()) == pytest.approx(
        1 / 12, abs=0.002
    )
    for left, right in (
        (bits[1:], bits[:-1]),
        (bits[:, 1:], bits[:, :-1]),
        (bits[:, :, 1:], bits[:, :, :-1]),
    ):
        assert abs(float(((left - 0.5) * (right - 0.5)).mean())) < 0.002
