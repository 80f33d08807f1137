"""Maps names of features or labels to row numbers of a linear model. New names get new rows."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from storage.arrays import Ragged, offsets_of


class Lookup:
    """Maps names to row numbers, from 0 in order of first appearance.

    A model that uses a lookup, such as ``tasks.linear.svm.OnlineSvm``, grows when the lookup gets new names.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._row_numbers = _RowNumbers()
        for count, name in enumerate(names):
            if self._row_numbers[name] != count:
                raise ValueError(f"{name!r} is named twice; names must be unique")

    def __len__(self) -> int:
        return len(self._row_numbers)

    def __iter__(self) -> Iterator[str]:
        """Iterates over the names in row order."""
        return iter(self._row_numbers)

    def rows_of(self, names: Iterable[str]) -> list[int]:
        """Returns the row number of each name, and adds new names, which get the next numbers."""
        return list(map(self._row_numbers.__getitem__, names))

    def fit_transform(self, samples: Sequence[Mapping[str, float]]) -> Any:
        """Converts samples, which map names to values, to a float32 CSR matrix, and adds new names."""
        count = sum(map(len, samples))
        names = itertools.chain.from_iterable(samples)
        return self._to_matrix(
            samples, np.fromiter(map(self._row_numbers.__getitem__, names), np.int32, count)
        )

    def transform(self, samples: Sequence[Mapping[str, float]]) -> Any:
        """Converts samples, which map names to values, to a float32 CSR matrix, and ignores new names."""
        ids = [self._row_numbers.get(name, -1) for sample in samples for name in sample]
        return self._to_matrix(samples, np.array(ids, dtype=np.int32))

    def _to_matrix(self, samples: Sequence[Mapping[str, float]], ids: np.ndarray) -> Any:
        from scipy.sparse import csr_matrix

        values = itertools.chain.from_iterable(sample.values() for sample in samples)
        data, in_lookup = np.fromiter(values, np.float32, len(ids)), ids >= 0
        rows = Ragged(offsets_of([len(sample) for sample in samples]), ids).where(in_lookup)
        return csr_matrix((data[in_lookup], rows.values, rows.offsets), shape=(len(samples), len(self)))


class _RowNumbers(dict[str, int]):
    def __missing__(self, name: str) -> int:
        if not isinstance(name, str):
            raise TypeError(f"names of features and labels must be str, got {name!r}")
        self[name] = row = len(self)
        return row
