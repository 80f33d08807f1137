"""Names of features or labels to rows of a model; a name seen for the first time gets the next row."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from storage.arrays import offsets_of


class Lookup:
    """Rows by name, numbered from 0 in the order in which the names came.

    A model that was given a lookup grows with it: see :class:`tasks.linear.svm.OnlineSvm`.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._rows = _Rows()
        for count, name in enumerate(names):
            if self._rows[name] != count:
                raise ValueError(f"{name!r} is named twice; each name stands for one row")

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        """The names by row."""
        return iter(self._rows)

    def rows_of(self, names: Iterable[str]) -> list[int]:
        """The row of each name; names that are new get the next rows."""
        return list(map(self._rows.__getitem__, names))

    def fit_transform(self, samples: Sequence[Mapping[str, float]]) -> Any:
        """Samples, each of names to values: float32 CSR (samples, features). New names get the next rows."""
        count = sum(map(len, samples))
        names = itertools.chain.from_iterable(samples)
        return self._matrix(samples, np.fromiter(map(self._rows.__getitem__, names), np.int32, count))

    def transform(self, samples: Sequence[Mapping[str, float]]) -> Any:
        """The same without names that are new, and without their values."""
        ids = [self._rows.get(name, -1) for sample in samples for name in sample]
        return self._matrix(samples, np.array(ids, dtype=np.int32))

    def _matrix(self, samples: Sequence[Mapping[str, float]], ids: np.ndarray) -> Any:
        from scipy.sparse import csr_matrix

        values = itertools.chain.from_iterable(sample.values() for sample in samples)
        data, offsets = np.fromiter(values, np.float32, len(ids)), offsets_of([len(own) for own in samples])
        known = ids >= 0
        if not known.all():
            kept = offsets_of(known)
            data, ids, offsets = data[known], ids[known], kept[offsets]
        return csr_matrix((data, ids, offsets), shape=(len(samples), len(self)))


class _Rows(dict[str, int]):
    def __missing__(self, name: str) -> int:
        if not isinstance(name, str):
            raise TypeError(f"names of features and labels must be str, got {name!r}")
        self[name] = row = len(self)
        return row
