"""Arrays on disk: memory maps, and ragged arrays as offsets and values; rows at unit norm. NumPy alone.

A ragged array of n rows is two files, ``NAME.offsets.npy`` (int64, n + 1) and ``NAME.values.npy``; row i is
``values[offsets[i]:offsets[i + 1]]``. Give workers a path: a pickled memory map is its whole data.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import DTypeLike as Dtype

SMALLEST_NORM = 1e-9  # norms up to it are what rounding leaves of zero
BLOCK = 32_768  # rows in memory at a time: of 768 numbers, 100 MB
_maps: WeakValueDictionary[tuple[Path, int, int], np.ndarray] = WeakValueDictionary()
_opening = threading.Lock()


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths: int64 offsets (rows + 1,) from 0 on, and values (sum of lengths,)."""

    offsets: np.ndarray
    values: np.ndarray

    def __post_init__(self) -> None:
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.values):
            got = f"{self.offsets[:1]} … {self.offsets[-1:]}"
            raise ValueError(f"offsets must run from 0 to {len(self.values)}, got {got}")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """int64 (rows,)."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> np.ndarray:
        """The row of each value: int64 (sum of lengths,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def take(self, rows: np.ndarray) -> Ragged:
        """The rows with these numbers (taken,), in that order, by one vectorised gather."""
        all_offsets = np.asarray(self.offsets)  # not a memmap: every gather would make another one
        starts = all_offsets.take(rows)
        lengths = all_offsets.take(np.asarray(rows) + 1) - starts
        offsets = offsets_of(lengths)
        positions = np.arange(offsets[-1], dtype=np.int64) + np.repeat(starts - offsets[:-1], lengths)
        return Ragged(offsets, np.asarray(self.values).take(positions))

    def where(self, kept: np.ndarray) -> Ragged:
        """Each row without the values that are not ``kept``: bool (sum of lengths,)."""
        return Ragged(offsets_of(kept).take(self.offsets), self.values[kept])

    def between(self, begin: int, end: int) -> Ragged:
        """Rows begin to end (exclusive), without a copy of their values."""
        offsets = np.asarray(self.offsets[begin : end + 1])
        return Ragged(offsets - offsets[0], self.values[offsets[0] : offsets[-1]])

    def append(self, other: Ragged) -> Ragged:
        """Each row followed by the other's row of the same number."""
        if len(self) != len(other):
            raise ValueError(f"{len(self)} rows cannot be followed by {len(other)}; both need one a title")
        offsets = np.asarray(self.offsets) + np.asarray(other.offsets)
        values = np.empty(offsets[-1], dtype=self.values.dtype)
        values[np.arange(len(self.values)) + np.repeat(other.offsets[:-1], self.lengths)] = self.values
        values[np.arange(len(other.values)) + np.repeat(self.offsets[1:], other.lengths)] = other.values
        return Ragged(offsets, values)

    def members(self, width: int) -> np.ndarray:
        """Which values below ``width`` each row holds: bool (rows, width)."""
        matrix = np.zeros((len(self), width), dtype=bool)
        matrix[self.owners, self.values] = True
        return matrix

    @staticmethod
    def from_rows(rows: Sequence[Sequence[int]] | Sequence[np.ndarray], dtype: Dtype = np.int32) -> Ragged:
        """Packs a list of rows."""
        values = np.concatenate([np.zeros(0, dtype), *(np.asarray(row, dtype) for row in rows)])
        return Ragged(offsets_of([len(row) for row in rows]), values)

    @staticmethod
    def concatenate(parts: Sequence[Ragged]) -> Ragged:
        """The rows of all parts (at least one), one part after the other."""
        if len(parts) == 1:
            return parts[0]
        lengths = np.concatenate([part.lengths for part in parts])
        return Ragged(offsets_of(lengths), np.concatenate([part.values for part in parts]))

    def save(self, folder: Path, name: str) -> None:
        """Writes ``name.offsets.npy`` and ``name.values.npy``."""
        np.save(folder / f"{name}.offsets.npy", self.offsets)
        np.save(folder / f"{name}.values.npy", self.values)

    @staticmethod
    def open(folder: Path, name: str) -> Ragged:
        """Maps a saved ragged array."""
        return Ragged(open_array(folder, f"{name}.offsets"), open_array(folder, f"{name}.values"))


def offsets_of(lengths: np.ndarray | Sequence[int]) -> np.ndarray:
    """Offsets of rows of these lengths: int64 (rows + 1,)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def row_blocks(rows: int) -> list[slice]:
    """Consecutive slices of at most 32,768 rows that cover ``rows``; an empty one where there are none."""
    return [slice(begin, min(begin + BLOCK, rows)) for begin in range(0, max(rows, 1), BLOCK)]


@contextmanager
def array_writer(
    folder: Path, name: str, dtype: Dtype, row: tuple[int, ...] = ()
) -> Iterator[Callable[[np.ndarray], None]]:
    """Writes ``NAME.npy`` part by part; gives the function that appends one. Complete when the block ends.

    ``row`` is the shape of a row: () is one number.
    """
    length = 0

    def append(part: np.ndarray) -> None:
        nonlocal length
        length += len(part)
        file.write(np.ascontiguousarray(part, dtype).data)

    def write_header() -> None:  # NumPy leaves room for the first axis to grow: the last one fits, too
        header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (length, *row)}
        np.lib.format.write_array_header_1_0(file, header)

    with open(folder / f"{name}.npy", "wb") as file:
        write_header()
        yield append
        file.seek(0)
        write_header()


def stable_order(values: np.ndarray, below: int) -> np.ndarray:
    """A stable argsort, int64 (any,), of integers (any,) below a bound: radix sort, sixteen bits a pass."""
    order = np.argsort(values.astype(np.uint16), kind="stable")
    for shift in range(16, (below - 1).bit_length(), 16):
        order = order.take(np.argsort((values.take(order) >> shift).astype(np.uint16), kind="stable"))
    return order


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Rows of (rows, dim) at unit norm, of the same type; those that are zero or not finite are zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    known = np.isfinite(norms) & (norms > SMALLEST_NORM)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=known)


def open_array(folder: Path, name: str) -> np.ndarray:
    """Maps ``name.npy`` read-only, once for all who hold it: a resident page counts for each map."""
    file = Path(folder) / f"{name}.npy"
    about = file.stat()
    with _opening:
        array = _maps.get(key := (file, about.st_ino, about.st_mtime_ns))
        if array is None:
            array = _maps[key] = np.load(file, mmap_mode="r")
        return array
