"""Rows of names, and sparse rows of samples with named features."""

import numpy as np
import pytest

from tasks.linear.lookup import Lookup


def test_names_get_rows_in_order_of_first_appearance() -> None:
    lookup = Lookup(["news"])
    assert lookup.rows_of(["film", "news", "film", "quiz"]) == [1, 0, 1, 2]
    assert len(lookup) == 3 and list(lookup) == ["news", "film", "quiz"]


def test_samples_become_rows_and_grow_the_lookup() -> None:
    lookup = Lookup()
    first = lookup.fit_transform([{"a": 1, "b": 2.5}, {}, {"b": -1}])
    assert first.dtype == np.float32 and first.toarray().tolist() == [[1, 2.5], [0, 0], [0, -1]]
    assert lookup.fit_transform([{"c": 3, "a": 4}]).toarray().tolist() == [[4, 0, 3]]
    assert list(lookup) == ["a", "b", "c"]


def test_transform_ignores_unknown_names() -> None:
    lookup = Lookup(["a", "b"])
    asked = lookup.transform([{"x": 7, "b": 2}, {"y": 1}, {"a": 3, "z": 9}])
    assert asked.toarray().tolist() == [[0, 2], [0, 0], [3, 0]] and asked.nnz == 2
    assert len(lookup) == 2
    assert lookup.transform([]).shape == (0, 2) and lookup.fit_transform([]).shape == (0, 2)


def test_duplicate_names_and_other_types_are_refused() -> None:
    with pytest.raises(ValueError, match="'a' is named twice"):
        Lookup(["a", "b", "a"])
    with pytest.raises(TypeError, match="must be str, got 7"):
        Lookup().fit_transform([{7: 1.0}])  # pyright: ignore[reportArgumentType]
