"""Tables of ratings: numbers of names, and invalid input."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tasks.linear.rating_blocks import BLOCKS, TILE, sort_into_blocks
from tasks.linear.ratings import Ratings, number_names


def test_names_are_numbered_by_first_appearance():
    ratings = Ratings.from_columns(["b", "a", "b"], np.array([7, 7, 3]), [1, 2.5, 3])
    assert (ratings.users.tolist(), ratings.user_names) == ([0, 1, 0], ["b", "a"])
    assert (ratings.items.tolist(), ratings.item_names) == ([0, 0, 1], ["7", "3"])
    assert ratings.values.dtype == np.float32 and ratings.values.tolist() == [1, 2.5, 3] and len(ratings) == 3


@pytest.mark.parametrize("names", [[], pa.chunked_array([], pa.string()), np.array([], np.int64)])
def test_no_names_have_no_numbers(names: Any):
    ids, known = number_names(names)
    assert len(ids) == 0 and known == []


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_a_rating_that_is_not_finite_is_named(value: float):
    with pytest.raises(ValueError, match=r"rating 1 is .*; expected a finite float32"):
        Ratings.from_columns(["a", "a"], ["x", "y"], [1, value])


@pytest.mark.parametrize(
    ("users", "items", "values", "message"),
    [
        ([], [], [], "no ratings; give at least one"),
        (["a"], ["x", "y"], [1, 2], "1 users, 2 items and 2 ratings"),
        (["a", None], ["x", "y"], [1, 2], "name 1 is missing"),
        (["a"], [2.5], [1], r"names are double, such as 2\.5; expected strings or integers"),
    ],
)
def test_columns_that_make_no_table_are_refused(users: Any, items: Any, values: Any, message: str):
    with pytest.raises(ValueError, match=message):
        Ratings.from_columns(users, items, values)


def test_numbers_beyond_the_names_are_named():
    ids, values = np.array([0, 1]), np.ones(2, np.float32)
    with pytest.raises(ValueError, match="rating 1 has the user number 1; expected a number from 0 to 0"):
        Ratings(ids, ids, values, ["a"], ["x", "y"])
    with pytest.raises(ValueError, match="rating 0 has the item number -1; expected a number from 0 to 1"):
        Ratings(ids, ids - 1, values, ["a", "b"], ["x", "y"])
    with pytest.raises(ValueError, match="two items are named 'x'"):
        Ratings(ids, ids, values, ["a", "b"], ["x", "x"])


def test_blocks_hold_each_rating_once_and_share_no_row_within_a_stage():
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 90, 3_000), (rng.random(3_000) ** 3 * 70).astype(np.int64)
    blocks = sort_into_blocks(users, items, np.arange(3_000, dtype=np.float32), rng)
    seen = []
    for stage in blocks.stages():
        assert len(stage) == BLOCKS
        for side in (0, 1):
            rows = np.concatenate([np.unique(block[side]) for block in stage])
            assert len(np.unique(rows)) == len(rows)
        for block_users, block_items, values in stage:
            assert (np.diff(block_users // (BLOCKS * TILE)) >= 0).all()
            assert (users[values.astype(int)] == block_users).all()
            assert (items[values.astype(int)] == block_items).all()
            seen += values.tolist()
    assert sorted(seen) == list(range(3_000))
    by_part = [sum(len(block[0]) for block in stage) for stage in blocks.stages()]
    assert max(by_part) < 1.5 * min(by_part)
