"""Validates ratings (user, item, value), because the compiled loops do not check array bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Ratings:
    """Ratings of items by users. A user may rate an item more than once.

    Attributes:
        users: User numbers, integers (ratings,).
        items: Item numbers, integers (ratings,).
        values: Ratings, finite float32 (ratings,).
        user_names: Names of the users, in the order of their numbers.
        item_names: Names of the items, in the order of their numbers.
    """

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray
    user_names: Sequence[str]
    item_names: Sequence[str]

    def __post_init__(self) -> None:
        lengths = len(self.users), len(self.items), len(self.values)
        if len(set(lengths)) > 1:
            raise ValueError(
                "{} users, {} items and {} ratings; give one user and one item per rating".format(*lengths)
            )
        if not len(self.values):
            raise ValueError("no ratings; give at least one")
        for kind, ids, names in (
            ("user", self.users, self.user_names),
            ("item", self.items, self.item_names),
        ):
            errors = np.flatnonzero((ids < 0) | (ids >= len(names)))
            if len(errors):
                raise ValueError(
                    f"rating {errors[0]} has the {kind} number {ids[errors[0]]}; expected a number from 0 "
                    f"to {len(names) - 1}"
                )
            if len(set(names)) < len(names):
                duplicate = next(name for index, name in enumerate(names) if name in set(names[:index]))
                raise ValueError(
                    f"two {kind}s are named {duplicate!r}; names must be unique: use one number per {kind}"
                )
        errors = np.flatnonzero(~np.isfinite(self.values))
        if len(errors):
            raise ValueError(f"rating {errors[0]} is {self.values[errors[0]]}; expected a finite float32")

    def __len__(self) -> int:
        return len(self.values)

    @staticmethod
    def from_columns(users: Any, items: Any, values: Any) -> Ratings:
        """Builds ratings from three columns of equal length: user names, item names and values.

        Columns are lists, NumPy arrays or Arrow arrays. Names are strings or integers; 7 and "7" are equal.
        """
        user_ids, user_names = number_names(users)
        item_ids, item_names = number_names(items)
        with np.errstate(over="ignore"):  # overflow gives infinity, which is rejected
            numbers = np.asarray(values).astype(np.float32)
        return Ratings(user_ids, item_ids, numbers, user_names, item_names)


def number_names(names: Any) -> tuple[np.ndarray, list[str]]:
    """Numbers the distinct names in the order of first appearance.

    Returns:
        The number of each name, int32 (names,), and the distinct names in the order of their numbers.
    """
    column = names if isinstance(names, pa.ChunkedArray) else pa.chunked_array([pa.array(names)])
    kind = column.type
    accepted = pa.types.is_string(kind), pa.types.is_large_string(kind), pa.types.is_integer(kind)
    if len(column) and not any(accepted):
        raise ValueError(f"names are {kind}, such as {column[0]}; expected strings or integers")
    if column.null_count:
        index = next(index for index, name in enumerate(column) if not name.is_valid)
        raise ValueError(f"name {index} is missing; expected a string or an integer")
    encoded_column = column.combine_chunks().dictionary_encode()
    if isinstance(encoded_column, pa.ChunkedArray):  # the column has no chunks
        encoded_column = encoded_column.combine_chunks()
    return encoded_column.indices.to_numpy(), encoded_column.dictionary.cast(pa.string()).to_pylist()
