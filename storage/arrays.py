"""Arrays on disk: memory maps, and ragged arrays as offsets and values. NumPy alone.

A ragged array of n rows is two files, ``NAME.offsets.npy`` (int64, n + 1) and ``NAME.values.npy``; row i is
``values[offsets[i]:offsets[i + 1]]``. Opened with ``mmap_mode="r"``: opening reads headers only, and a worker process
that is handed a path, never an array, maps the same pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths.

    Attributes:
        offsets: int64, shape (rows + 1,), starting at 0, never falling.
        values: Shape (sum of lengths,).
    """

    offsets: np.ndarray
    values: np.ndarray

    def __post_init__(self) -> None:
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.values):
            raise ValueError(f"offsets must run from 0 to {len(self.values)}, got {self.offsets[:1]} … {self.offsets[-1:]}")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """int64, shape (rows,)."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> np.ndarray:
        """The row of each value: int64, shape (sum of lengths,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def take(self, rows: np.ndarray) -> Ragged:
        """The named rows, in that order, by one vectorised gather.

        Args:
            rows: Integers, shape (taken,).
        """
        all_offsets = np.asarray(self.offsets)  # no memmap: that would be made anew at every gather
        starts = all_offsets.take(rows)
        lengths = all_offsets.take(np.asarray(rows) + 1) - starts
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        positions = np.arange(offsets[-1], dtype=np.int64) + np.repeat(starts - offsets[:-1], lengths)
        return Ragged(offsets, np.asarray(self.values).take(positions))

    def between(self, begin: int, end: int) -> Ragged:
        """Rows begin to end (that one left out), their values not copied."""
        offsets = np.asarray(self.offsets[begin : end + 1])
        return Ragged(offsets - offsets[0], self.values[offsets[0] : offsets[-1]])

    def append(self, other: Ragged) -> Ragged:
        """Each row followed by the other's row of the same number.

        Raises:
            ValueError: The numbers of rows differ.
        """
        if len(self) != len(other):
            raise ValueError(f"{len(self)} rows cannot be followed by {len(other)}; both need one a title")
        offsets = np.asarray(self.offsets) + np.asarray(other.offsets)
        values = np.empty(offsets[-1], dtype=self.values.dtype)
        values[np.arange(len(self.values)) + np.repeat(other.offsets[:-1], self.lengths)] = self.values
        values[np.arange(len(other.values)) + np.repeat(self.offsets[1:], other.lengths)] = other.values
        return Ragged(offsets, values)

    def members(self, width: int) -> np.ndarray:
        """Which values below ``width`` each row holds: bool, shape (rows, width)."""
        matrix = np.zeros((len(self), width), dtype=bool)
        matrix[self.owners, self.values] = True
        return matrix

    @staticmethod
    def from_rows(rows: Sequence[Sequence[int]] | Sequence[np.ndarray], dtype: np.typing.DTypeLike = np.int32) -> Ragged:
        """Packs a list of rows."""
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        values = np.concatenate([np.asarray(row, dtype=dtype) for row in rows]) if rows else np.zeros(0, dtype=dtype)
        return Ragged(offsets, values.astype(dtype, copy=False))

    @staticmethod
    def concatenate(parts: Sequence[Ragged]) -> Ragged:
        """The rows of one after those of the other; one part at least."""
        if len(parts) == 1:
            return parts[0]
        lengths = np.concatenate([part.lengths for part in parts])
        return Ragged(np.append(0, np.cumsum(lengths)), np.concatenate([part.values for part in parts]))

    def save(self, folder: Path, name: str) -> None:
        """Writes ``name.offsets.npy`` and ``name.values.npy``."""
        np.save(folder / f"{name}.offsets.npy", self.offsets)
        np.save(folder / f"{name}.values.npy", self.values)

    @staticmethod
    def open(folder: Path, name: str) -> Ragged:
        """Maps a saved ragged array."""
        return Ragged(open_array(folder, f"{name}.offsets"), open_array(folder, f"{name}.values"))


class ArrayWriter:
    """Writes ``NAME.npy`` part by part, in memory for one part. Complete when the ``with`` block ends.

    Args:
        folder: Where.
        name: Of the array.
        dtype: Of its elements.
    """

    def __init__(self, folder: Path, name: str, dtype: np.typing.DTypeLike) -> None:
        self._path, self._dtype, self._length = Path(folder) / f"{name}.npy", np.dtype(dtype), 0

    def __enter__(self) -> ArrayWriter:
        self._file = open(self._path, "wb")
        self._write_header()
        return self

    def append(self, part: np.ndarray) -> None:
        """Writes a part, shape (any,)."""
        self._length += len(part)
        self._file.write(np.ascontiguousarray(part, dtype=self._dtype).data)

    def __exit__(self, *error: object) -> None:
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        """NumPy leaves room in the header for the first axis to grow, so the last header fits where the first was."""
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self._length,)}
        np.lib.format.write_array_header_1_0(self._file, header)


def stable_order(values: np.ndarray, below: int) -> np.ndarray:
    """Where each value goes when they are sorted, equal ones staying in order: NumPy's radix sort, sixteen bits a pass.

    Args:
        values: Integers, shape (any,), none negative.
        below: More than the largest.

    Returns:
        int64 (any,).
    """
    order = np.argsort(values.astype(np.uint16), kind="stable")
    for shift in range(16, (below - 1).bit_length(), 16):
        order = order.take(np.argsort((values.take(order) >> shift).astype(np.uint16), kind="stable"))
    return order


def open_array(folder: Path, name: str) -> np.ndarray:
    """Maps ``name.npy``, read only.

    Raises:
        FileNotFoundError: There is no such file.
    """
    return np.load(Path(folder) / f"{name}.npy", mmap_mode="r")
