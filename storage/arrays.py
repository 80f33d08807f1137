"""Opens memory-mapped arrays, stores ragged arrays (rows of different lengths), and normalizes rows.

This module depends on NumPy only.

A ragged array of n rows is stored in two files, ``NAME.offsets.npy`` (int64, n + 1) and ``NAME.values.npy``;
row i is ``values[offsets[i]:offsets[i + 1]]``. Pass paths, not arrays, to worker processes, because pickling
a memory map copies its data.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import DTypeLike as Dtype

MIN_NORM = 1e-9  # vectors with smaller norms are zero except for rounding errors, and become zero
BLOCK_ROWS = 32_768  # rows in memory at a time; 100 MB for 768 dimensions
# Memory maps of open_array, by file, inode and time of modification in nanoseconds.
_open_memory_maps: WeakValueDictionary[tuple[Path, int, int], np.ndarray] = WeakValueDictionary()
_open_memory_maps_lock = threading.Lock()


@dataclass(frozen=True)
class Ragged:
    """A ragged array: rows of different lengths in one array of values.

    Attributes:
        offsets: Start of each row in ``values``, and the end of the last row: int64 (rows + 1,).
        values: Values of all rows, concatenated: (sum of lengths,).
    """

    offsets: np.ndarray
    values: np.ndarray

    def __post_init__(self) -> None:
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.values):
            bounds = f"{self.offsets[:1]} … {self.offsets[-1:]}"
            raise ValueError(f"offsets must run from 0 to {len(self.values)}, got {bounds}")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """Returns the number of values in each row: int64 (rows,)."""
        return np.diff(self.offsets)

    @property
    def row_ids(self) -> np.ndarray:
        """Returns, for each value, the index of its row: int64 (sum of lengths,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def take(self, rows: np.ndarray) -> Ragged:
        """Returns a ragged array of the rows with the indices ``rows``, int (n,), in this order."""
        all_offsets = np.asarray(self.offsets)  # take() of an np.memmap would return np.memmap objects
        starts = all_offsets.take(rows)
        lengths = all_offsets.take(np.asarray(rows) + 1) - starts
        offsets = offsets_of(lengths)
        positions = np.arange(offsets[-1], dtype=np.int64) + np.repeat(starts - offsets[:-1], lengths)
        return Ragged(offsets, np.asarray(self.values).take(positions))

    def where(self, mask: np.ndarray) -> Ragged:
        """Returns a ragged array with the same number of rows, without the values whose ``mask`` is False.

        Args:
            mask: One element per value: bool (sum of lengths,).
        """
        return Ragged(offsets_of(mask).take(self.offsets), self.values[mask])

    def between(self, begin: int, end: int) -> Ragged:
        """Returns the rows with begin <= index < end, without copying their values."""
        offsets = np.asarray(self.offsets[begin : end + 1])
        return Ragged(offsets - offsets[0], self.values[offsets[0] : offsets[-1]])

    def append(self, other: Ragged) -> Ragged:
        """Returns a ragged array whose row i is row i of this array followed by row i of ``other``."""
        if len(self) != len(other):
            problem = f"cannot append {len(other)} rows to {len(self)} rows"
            raise ValueError(f"{problem}, because row i is appended to row i; pass the same number of rows")
        offsets = np.asarray(self.offsets) + np.asarray(other.offsets)
        values = np.empty(offsets[-1], dtype=self.values.dtype)
        values[np.arange(len(self.values)) + np.repeat(other.offsets[:-1], self.lengths)] = self.values
        values[np.arange(len(other.values)) + np.repeat(self.offsets[1:], other.lengths)] = other.values
        return Ragged(offsets, values)

    def multi_hot(self, width: int) -> np.ndarray:
        """Returns bool (rows, width): element [i, j] is True if row i contains the value j."""
        has_value = np.zeros((len(self), width), dtype=bool)
        has_value[self.row_ids, self.values] = True
        return has_value

    @staticmethod
    def from_rows(rows: Sequence[Sequence[int]] | Sequence[np.ndarray], dtype: Dtype = np.int32) -> Ragged:
        """Creates a ragged array from a list of rows; ``dtype`` is the type of the values."""
        values = np.concatenate([np.zeros(0, dtype), *(np.asarray(row, dtype) for row in rows)])
        return Ragged(offsets_of([len(row) for row in rows]), values)

    @staticmethod
    def concatenate(arrays: Sequence[Ragged]) -> Ragged:
        """Concatenates the rows of at least one ragged array."""
        if len(arrays) == 1:
            return arrays[0]
        lengths = np.concatenate([array.lengths for array in arrays])
        return Ragged(offsets_of(lengths), np.concatenate([array.values for array in arrays]))

    def save(self, folder: Path, name: str) -> None:
        """Writes the files ``name.offsets.npy`` and ``name.values.npy`` into a folder."""
        np.save(folder / f"{name}.offsets.npy", self.offsets)
        np.save(folder / f"{name}.values.npy", self.values)

    @staticmethod
    def open(folder: Path, name: str) -> Ragged:
        """Opens a ragged array that ``save`` has written, as memory maps."""
        return Ragged(open_array(folder, f"{name}.offsets"), open_array(folder, f"{name}.values"))


def offsets_of(lengths: np.ndarray | Sequence[int]) -> np.ndarray:
    """Computes the offsets of rows from their lengths: int64 (rows + 1,)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def row_blocks(row_count: int) -> list[slice]:
    """Splits the rows of an array into slices of at most BLOCK_ROWS rows. Returns at least one slice."""
    begins = range(0, max(row_count, 1), BLOCK_ROWS)
    return [slice(begin, min(begin + BLOCK_ROWS, row_count)) for begin in begins]


@contextmanager
def array_writer(
    folder: Path, name: str, dtype: Dtype, row_shape: tuple[int, ...] = ()
) -> Iterator[Callable[[np.ndarray], None]]:
    """Writes an array to ``folder/name.npy`` incrementally; yields a function that appends rows to the file.

    The file is complete when the ``with`` block ends. ``row_shape`` is () if rows are scalars.
    """
    length = 0

    def append(rows: np.ndarray) -> None:
        nonlocal length
        length += len(rows)
        file.write(np.ascontiguousarray(rows, dtype).data)

    def write_header() -> None:  # NumPy pads the header so that the final length fits
        header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (length, *row_shape)}
        np.lib.format.write_array_header_1_0(file, header)

    with open(folder / f"{name}.npy", "wb") as file:
        write_header()
        yield append
        file.seek(0)
        write_header()


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Divides each row of ``vectors``, (rows, dim), by its L2 norm and keeps the dtype.

    Rows that are zero or contain a non-finite value become zero.
    """
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    is_valid = np.isfinite(norms) & (norms > MIN_NORM)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=is_valid)


def open_array(folder: Path, name: str) -> np.ndarray:
    """Opens ``folder/name.npy`` as a read-only memory map.

    All callers in the process share one map per file, because the operating system counts the resident pages
    of a file once per map.
    """
    file = Path(folder) / f"{name}.npy"
    stat = file.stat()
    file_version = file, stat.st_ino, stat.st_mtime_ns
    with _open_memory_maps_lock:
        array = _open_memory_maps.get(file_version)
        if array is None:
            array = _open_memory_maps[file_version] = np.load(file, mmap_mode="r")
        return array


def open_tensor(file: Path, name: str) -> np.ndarray:
    """Opens a float32 tensor of a safetensors file as a read-only memory map, without a copy.

    Args:
        file: File in the format https://github.com/huggingface/safetensors#format.
        name: Name of the tensor in the file.

    Raises:
        ValueError: The tensor has another dtype.
    """
    with file.open("rb") as handle:
        header_bytes = int.from_bytes(handle.read(8), "little")
        header = json.loads(handle.read(header_bytes))[name]
    if header["dtype"] != "F32":
        raise ValueError(f"{file}: {name} has dtype {header['dtype']}, expected F32")
    shape, first_byte = tuple(header["shape"]), 8 + header_bytes + header["data_offsets"][0]
    if 0 in shape:  # an empty array cannot be mapped
        return np.empty(shape, dtype=np.float32)
    return np.asarray(np.memmap(file, np.float32, "r", first_byte, shape))
