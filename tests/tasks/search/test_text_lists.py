"""Lists of repeated texts in little memory."""

import pyarrow as pa
import pytest

from tasks.search.text_lists import TextLists


@pytest.mark.parametrize("chunks", [[[["a"], [], ["b", "a"]], [["c"]]], [[]], [[[]]]])
def test_lists_are_those_of_the_column(chunks: list[list[list[str]]]) -> None:
    column = pa.chunked_array([pa.array(chunk, pa.list_(pa.string())) for chunk in chunks])
    lists = TextLists(column)
    assert list(lists) == column.to_pylist() and lists[1:] == column.to_pylist()[1:]
    with pytest.raises(IndexError):
        lists[len(lists)]
