"""Sums of rows per bag, with and without torch, against a loop in float64."""

import sys

import numpy as np
import pytest

from storage.bag_sums import sum_rows


@pytest.mark.parametrize("with_torch", [True, False])
@pytest.mark.parametrize("lengths", [[], [0], [3], [2, 0, 5, 1, 0], [40] * 30])
def test_sums(lengths: list[int], with_torch: bool, monkeypatch: pytest.MonkeyPatch):
    if not with_torch:
        monkeypatch.delitem(sys.modules, "torch", raising=False)
    rng = np.random.default_rng(0)
    rows, offsets = rng.normal(size=(20, 7)).astype(np.float32), np.cumsum([0, *lengths])
    ids, weights = rng.integers(20, size=offsets[-1]), rng.random(offsets[-1]).astype(np.float32)
    expected = np.zeros((len(lengths), 7))
    bags = np.repeat(np.arange(len(lengths)), lengths)
    np.add.at(expected, bags, rows[ids].astype(np.float64) * weights[:, None])
    sums = sum_rows(rows, ids, offsets, weights)
    assert sums.dtype == np.float32 and sums.shape == expected.shape
    np.testing.assert_allclose(sums, expected, atol=1e-5)
