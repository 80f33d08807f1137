"""The running top k compared with a complete sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.neighbours.similarity import (
    EMPTY,
    RunningTop,
    hits_by_column,
    hits_by_row,
    pack,
    unpack,
)


@pytest.mark.parametrize("order", ["random", "rising", "falling", "equal"])
def test_keeps_the_greatest_and_their_ids(order: str):
    values = np.random.default_rng(0).permutation(20 * 600).reshape(20, 600).astype(np.float32)
    if order in ("rising", "falling"):
        values.sort(axis=1)
    values = {"falling": values[:, ::-1], "equal": np.ones_like(values)}.get(order, values).copy()
    top = RunningTop(20, 7)
    top.begin(0, values[:, :5], 0)  # fewer than wanted at first
    for start in range(5, 600, 119):
        tile = np.ascontiguousarray(values[:, start : start + 119])
        rows, columns, found = hits_by_row(tile, top.threshold, np.empty(tile.shape, bool))
        top.offer(0, rows, columns + start, found)
    kept, ids = top.best(np.arange(20))
    np.testing.assert_array_equal(kept, -np.sort(-values, axis=1)[:, :7])
    np.testing.assert_array_equal(np.take_along_axis(values, ids, 1), kept)
    assert all(len(set(row)) == 7 for row in ids.tolist())


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=40))
def test_packed_values_are_ordered_as_the_values_are(numbers: list[float]):
    values = np.array(numbers, dtype=np.float32)
    packed = pack(values, np.arange(len(values)))
    back, ids = unpack(packed)
    np.testing.assert_array_equal(back.view(np.int32), values.view(np.int32))
    assert ids.tolist() == list(range(len(values))) and (packed > EMPTY).all()
    np.testing.assert_array_equal(values[np.argsort(packed)], np.sort(values))


def test_hits_by_row_and_by_column_known_by_hand():
    tile = np.array([[1, 5, 2], [7, 0, 3]], dtype=np.float32)
    mask = np.empty(tile.shape, dtype=bool)
    assert [part.tolist() for part in hits_by_row(tile, np.array([1, 3], np.float32), mask)] == [
        [0, 0, 1],
        [1, 2, 0],
        [5, 2, 7],
    ]
    assert [part.tolist() for part in hits_by_column(tile, np.array([0, 0, 2], np.float32), mask)] == [
        [0, 0, 1, 2],
        [0, 1, 0, 1],
        [1, 7, 5, 3],
    ]
