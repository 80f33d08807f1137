"""Ratings as a table of (user, item, rating), checked at the door: compiled loops check no bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Ratings:
    """Users and items by number, beside their names; a pair may be rated more than once.

    Attributes:
        users: Numbers of users, integers (ratings,).
        items: Numbers of items, integers (ratings,).
        values: The ratings, finite float32 (ratings,).
        user_names: The name of each user number.
        item_names: The name of each item number.
    """

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray
    user_names: Sequence[str]
    item_names: Sequence[str]

    def __post_init__(self) -> None:
        lengths = len(self.users), len(self.items), len(self.values)
        if len(set(lengths)) > 1:
            raise ValueError("{} users, {} items and {} ratings; give one of each a rating".format(*lengths))
        if not len(self.values):
            raise ValueError("no ratings; give at least one")
        for what, ids, names in (
            ("user", self.users, self.user_names),
            ("item", self.items, self.item_names),
        ):
            wrong = np.flatnonzero((ids < 0) | (ids >= len(names)))
            if len(wrong):
                problem = f"rating {wrong[0]} is of {what} {ids[wrong[0]]}"
                raise ValueError(f"{problem}; there are {what}s 0 to {len(names) - 1}")
            if len(set(names)) < len(names):
                twice = next(name for place, name in enumerate(names) if name in set(names[:place]))
                raise ValueError(f"two {what}s are named {twice!r}; give each one number")
        wrong = np.flatnonzero(~np.isfinite(self.values))
        if len(wrong):
            raise ValueError(f"rating {wrong[0]} is {self.values[wrong[0]]}; expected a finite float32")

    def __len__(self) -> int:
        return len(self.values)

    @staticmethod
    def of(users: Any, items: Any, values: Any) -> Ratings:
        """Ratings of three columns (ratings,): names, which are strings or integers, and numbers.

        Each is an array of NumPy or Arrow, or a list. A number as a name is the same as its digits.
        """
        user_ids, user_names = numbered(users)
        item_ids, item_names = numbered(items)
        with np.errstate(over="ignore"):  # to infinity, which is refused
            numbers = np.asarray(values).astype(np.float32)
        return Ratings(user_ids, item_ids, numbers, user_names, item_names)

    @staticmethod
    def read(file: Path, user: str = "user", item: str = "item", rating: str = "rating") -> Ratings:
        """Ratings of a Parquet file, by the names of its columns."""
        columns = [user, item, rating]
        missing = [name for name in columns if name not in (found := pq.read_schema(file).names)]
        if missing:
            raise ValueError(f"{file} has columns {found}, not {missing}; name them by user, item and rating")
        table = pq.read_table(file, columns=columns)
        return Ratings.of(*(table[name] for name in columns))


def numbered(names: Any) -> tuple[np.ndarray, list[str]]:
    """The number of each name, int32 (names,), by first appearance, and the names of the numbers."""
    column = names if isinstance(names, pa.ChunkedArray) else pa.chunked_array([pa.array(names)])
    kind = column.type
    known = pa.types.is_string(kind), pa.types.is_large_string(kind), pa.types.is_integer(kind)
    if len(column) and not any(known):
        raise ValueError(f"names are {kind}, such as {column[0]}; expected strings or integers")
    if column.null_count:
        place = next(place for place, name in enumerate(column) if not name.is_valid)
        raise ValueError(f"name {place} is missing; expected a string or an integer")
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):  # of no chunk
        encoded = encoded.combine_chunks()
    return encoded.indices.to_numpy(), encoded.dictionary.cast(pa.string()).to_pylist()
