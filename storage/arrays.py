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

    def take(self, rows: np.ndarray) -> Ragged:
        """The named rows, in that order, by one vectorised gather.

        Args:
            rows: Integers, shape (taken,).
        """
        starts = self.offsets[rows]
        lengths = self.offsets[np.asarray(rows) + 1] - starts
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        positions = np.arange(offsets[-1], dtype=np.int64) + np.repeat(starts - offsets[:-1], lengths)
        return Ragged(offsets, np.asarray(self.values[positions]))

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

    @staticmethod
    def from_rows(rows: Sequence[Sequence[int]] | Sequence[np.ndarray], dtype: np.typing.DTypeLike = np.int32) -> Ragged:
        """Packs a list of rows."""
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        values = np.concatenate([np.asarray(row, dtype=dtype) for row in rows]) if rows else np.zeros(0, dtype=dtype)
        return Ragged(offsets, values.astype(dtype, copy=False))

    def save(self, folder: Path, name: str) -> None:
        """Writes ``name.offsets.npy`` and ``name.values.npy``."""
        np.save(folder / f"{name}.offsets.npy", self.offsets)
        np.save(folder / f"{name}.values.npy", self.values)

    @staticmethod
    def open(folder: Path, name: str) -> Ragged:
        """Maps a saved ragged array."""
        return Ragged(open_array(folder, f"{name}.offsets"), open_array(folder, f"{name}.values"))


def open_array(folder: Path, name: str) -> np.ndarray:
    """Maps ``name.npy``, read only.

    Raises:
        FileNotFoundError: There is no such file.
    """
    return np.load(Path(folder) / f"{name}.npy", mmap_mode="r")
