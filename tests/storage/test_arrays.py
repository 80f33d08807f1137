"""Ragged arrays compared with lists of lists, and mapped from disk."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.arrays import Ragged, array_writer, open_array, unit_rows

ROWS = st.lists(st.lists(st.integers(-1000, 1000), max_size=6), max_size=8)


def lists(ragged: Ragged) -> list[list[int]]:
    return [ragged[row].tolist() for row in range(len(ragged))]


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_concatenated_rows_follow_one_another(parts: list[list[list[int]]]):
    joined = Ragged.concatenate([Ragged.from_rows(part) for part in parts])
    assert lists(joined) == [row for part in parts for row in part] and joined.values.dtype == np.int32


@given(ROWS)
def test_rows_round_trip(rows: list[list[int]]):
    ragged = Ragged.from_rows(rows)
    assert lists(ragged) == rows and len(ragged) == len(rows)
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert ragged.values.dtype == np.int32 and ragged.offsets.dtype == np.int64


@given(ROWS.filter(len), st.data())
def test_take_returns_the_given_rows(rows: list[list[int]], data: st.DataObject):
    taken = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=12)), dtype=np.int64)
    assert lists(Ragged.from_rows(rows).take(taken)) == [rows[row] for row in taken]


def test_members_are_the_values_of_the_row():
    assert Ragged.from_rows([[2, 0], [], [1, 1]]).multi_hot(3).tolist() == [
        [True, False, True],
        [False] * 3,
        [False, True, False],
    ]


@given(ROWS, st.data())
def test_slices_of_rows(rows: list[list[int]], data: st.DataObject):
    begin = data.draw(st.integers(0, len(rows)))
    end = data.draw(st.integers(begin, len(rows)))
    assert lists(Ragged.from_rows(rows).between(begin, end)) == rows[begin:end]


@pytest.mark.parametrize("rows", [[], [[]], [[1, 2], [], [3]]], ids=["empty", "one empty row", "some"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
def test_saved_and_mapped(tmp_path: Path, rows: list[list[int]], dtype: type):
    Ragged.from_rows(rows, dtype=dtype).save(tmp_path, "tokens")
    opened = Ragged.open(tmp_path, "tokens")
    assert lists(opened) == rows and opened.values.dtype == dtype and isinstance(opened.values, np.memmap)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokens.offsets.npy", "tokens.values.npy"]
    taken = opened.take(np.arange(len(rows))[::-1])
    assert lists(taken) == rows[::-1] and not isinstance(taken.values, np.memmap)


@pytest.mark.parametrize(
    ("offsets", "values"), [([], [1]), ([1, 2], [1, 2]), ([0, 1], [1, 2]), ([0, 3], [1, 2])]
)
def test_offsets_that_do_not_fit_are_refused(offsets: list[int], values: list[int]):
    with pytest.raises(ValueError, match=f"offsets must run from 0 to {len(values)}, got"):
        Ragged(np.array(offsets, dtype=np.int64), np.array(values))


def test_append_concatenates_rows_pairwise():
    first, second = Ragged.from_rows([[1, 2], [], [3]]), Ragged.from_rows([[7], [8, 9], []])
    joined = first.append(second)
    assert [list(joined[row]) for row in range(3)] == [[1, 2, 7], [8, 9], [3]]
    with pytest.raises(ValueError, match="cannot append 1 rows to 3"):
        first.append(Ragged.from_rows([[1]]))


@pytest.mark.parametrize(
    "parts", [[], [[]], [[1, 2], [], [3]], [list(range(1000))] * 30], ids=["none", "empty", "some", "many"]
)
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.bool_])
def test_written_part_by_part(tmp_path: Path, parts: list[list[int]], dtype: type):
    with array_writer(tmp_path, "numbers", dtype) as append:
        for part in parts:
            append(np.array(part, dtype=np.int64))
    np.save(tmp_path / "whole.npy", np.concatenate([np.zeros(0), *parts]).astype(dtype))
    assert (tmp_path / "numbers.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_rows_have_unit_norm_and_non_finite_rows_are_zero():
    rows = np.array([[3, 4], [0, 0], [np.inf, 1], [np.nan, 1]], dtype=np.float32)
    found = unit_rows(rows)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [0, 0], [0, 0]], atol=1e-7)
    assert unit_rows(np.zeros((3, 0))).shape == (3, 0)


def test_an_array_is_mapped_once_until_its_file_is_another(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    first = open_array(tmp_path, "a")
    assert open_array(tmp_path, "a") is first and not first.flags.writeable
    np.save(tmp_path / "b.npy", np.arange(4))
    (tmp_path / "b.npy").replace(tmp_path / "a.npy")
    assert open_array(tmp_path, "a").tolist() == [0, 1, 2, 3] and first.tolist() == [0, 1, 2]
