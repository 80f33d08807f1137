"""Lists of names, one a title, as numbers into one list of distinct names.

A million lists of Python strings take gigabytes: each list, and each string of it, is an object.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage.arrays import Ragged, offsets_of


@dataclass(frozen=True, eq=False)
class NameLists(Sequence[list[str]]):
    """A sequence of lists of names; row i is made when it is read."""

    names: list[str]  # distinct, in the order in which the rows mention them
    rows: Ragged  # places in names

    @staticmethod
    def of(column: pa.ChunkedArray) -> NameLists:
        """The rows of a column of lists of texts; a null is an empty list."""
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()  # pyright: ignore[reportAttributeAccessIssue]
        values = pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type)
        values = values.combine_chunks().dictionary_encode()
        return NameLists(
            values.dictionary.to_pylist(), Ragged(offsets_of(lengths), values.indices.to_numpy())
        )

    @staticmethod
    def from_rows(rows: Iterable[Iterable[str]]) -> NameLists:
        """The same rows as places in a list of their names."""
        places: dict[str, int] = {}
        numbered = [[places.setdefault(name, len(places)) for name in row] for row in rows]
        return NameLists(list(places), Ragged.from_rows(numbered))

    def distinct(self) -> NameLists:
        """The same without repeats in a row."""
        owners = self.rows.owners
        keys = owners * np.int64(max(len(self.names), 1)) + self.rows.values
        kept = np.sort(np.unique(keys, return_index=True)[1])
        lengths = np.bincount(owners[kept], minlength=len(self))
        return NameLists(self.names, Ragged(offsets_of(lengths), self.rows.values[kept]))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return [self.names[place] for place in self.rows[row].tolist()]
