"""Lists of names as numbers."""

import pyarrow as pa

from storage.name_lists import NameLists

ROWS = [["b", "a", "b"], None, [], ["a", "c"]]


def column(*parts: list) -> pa.ChunkedArray:
    return pa.chunked_array(list(parts), pa.list_(pa.string()))


def test_rows_of_a_column_and_of_lists_are_the_same():
    for parts in ((ROWS,), (ROWS[:1], ROWS[1:]), ([], ROWS)):
        found = NameLists.from_column(column(*parts))
        assert list(found) == [["b", "a", "b"], [], [], ["a", "c"]] and found.names == ["b", "a", "c"]
    assert list(NameLists.from_rows(found)) == list(found)
    assert list(NameLists.from_column(column(ROWS).take(pa.array([3, 0])))) == [["a", "c"], ["b", "a", "b"]]


def test_distinct_keeps_the_first_of_each_row():
    assert list(NameLists.from_column(column(ROWS)).distinct()) == [["b", "a"], [], [], ["a", "c"]]


def test_no_rows_at_all():
    for none in (NameLists.from_column(column()), NameLists.from_column(column([])), NameLists.from_rows([])):
        assert list(none) == list(none.distinct()) == none.names == []
