"""Stores one list of names per title as indices into a list of distinct names.

A million Python lists of strings take gigabytes, because each list and each string is an object.
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
    """Compact sequence of lists of names, one per row. The list of a row is created when it is accessed.

    Attributes:
        names: Distinct names.
        rows: The names of each row, as indices into ``names``.
    """

    names: list[str]
    rows: Ragged

    @staticmethod
    def from_column(column: pa.ChunkedArray) -> NameLists:
        """Converts an Arrow column of lists of strings; null becomes an empty list."""
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()  # pyright: ignore[reportAttributeAccessIssue]
        names = pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type)
        encoded_names = names.combine_chunks().dictionary_encode()
        rows = Ragged(offsets_of(lengths), encoded_names.indices.to_numpy())
        return NameLists(encoded_names.dictionary.to_pylist(), rows)

    @staticmethod
    def from_rows(rows: Iterable[Iterable[str]]) -> NameLists:
        """Converts lists of names, one per row; ``names`` is in the order of first occurrence."""
        name_ids: dict[str, int] = {}
        id_rows = [[name_ids.setdefault(name, len(name_ids)) for name in row] for row in rows]
        return NameLists(list(name_ids), Ragged.from_rows(id_rows))

    def distinct(self) -> NameLists:
        """Returns a copy in which each row contains a name only once."""
        row_ids = self.rows.row_ids
        row_and_name = row_ids * np.int64(max(len(self.names), 1)) + self.rows.values  # one integer per pair
        is_first = np.zeros(len(row_and_name), dtype=bool)
        is_first[np.unique(row_and_name, return_index=True)[1]] = True
        return NameLists(self.names, self.rows.where(is_first))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return [self.names[name_id] for name_id in self.rows[row].tolist()]
