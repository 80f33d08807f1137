"""Stores the sparse samples of a binary classification problem on disk, in blocks that are read repeatedly.

    samples.bin    per block: feature ids (int32) and values (float32) of all its rows, the ends of the rows
                   (int32), labels (int8, -1 or 1), zeros up to a multiple of 8 bytes
    blocks.json    number of features; for each block, its numbers of rows and values, and its CRC-32

Blocks have the same layout in the file as in memory, so they need no decoding. After a block was read, its
pages are dropped from the page cache, because a file larger than memory would evict everything else.
"""

import copy
import json
import os
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix

from storage.arrays import Ragged, offsets_of
from storage.atomic import replaced_folder
from storage.json_file import write_json
from tasks.linear.sparse import validate_labels, validate_rows

SAMPLES, INDEX = "samples.bin", "blocks.json"
BLOCK_BYTES = 2 << 20
PREFETCH_BLOCKS = 2  # blocks that are read in the background while one is processed


@dataclass(frozen=True)
class SampleBlock:
    """Samples of one block, one per row.

    Attributes:
        number: Block number, from 0.
        first: Number of the first sample of the block, counted from the beginning of the file.
        offsets: Offsets of the rows in ``ids`` and ``values``, int64 (rows + 1,).
        ids: Feature ids, int32 (values,). The ids of a row are distinct.
        values: Values of the features, finite float32 (values,).
        labels: Label of each row, -1 or 1, int8 (rows,).
    """

    number: int
    first: int
    offsets: np.ndarray
    ids: np.ndarray
    values: np.ndarray
    labels: np.ndarray


def write_blocks(
    folder: Path,
    samples: Iterable[tuple[Any, Ragged]],
    features: int,
    block_bytes: int = BLOCK_BYTES,
) -> "SampleBlocks":
    """Writes samples to a folder in blocks. If an exception occurs, the folder keeps its previous content.

    Args:
        folder: Destination.
        samples: Batches of any size. A batch consists of rows (a scipy CSR matrix) and of their labels: [0]
            for a positive row and [] for a negative row. Duplicate ids in a row are summed.
        features: Number of features; feature ids are below this number.
        block_bytes: Maximum size of a block. A row that is larger gets a block of its own.

    Raises:
        ValueError: The folder holds other files, or there are no samples.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / INDEX).exists():
        raise ValueError(f"{folder} contains other files, which would be lost; choose an empty folder")
    blocks = []
    with replaced_folder(folder) as new_folder:
        with open(new_folder / SAMPLES, "wb") as file:
            for lengths, ids, values, labels in _to_blocks(samples, features, block_bytes):
                ends = np.cumsum(lengths, dtype=np.int32)
                content = b"".join(array.tobytes() for array in (ids, values, ends, labels))
                content += bytes(-len(content) % 8)
                file.write(content)
                blocks.append([len(lengths), len(ids), zlib.crc32(content)])
        if not blocks:
            raise ValueError(f"no samples to write to {folder}; expected at least one row")
        write_json(new_folder / INDEX, {"features": features, "blocks": blocks})
    return SampleBlocks(folder)


class SampleBlocks:
    """Reads the blocks of samples that ``write_blocks`` wrote.

    Attributes:
        features: Number of features.
        firsts: Number of the first sample of each block, then the number of samples; int64 (blocks + 1,).
        values: Total number of values of all samples.
        largest: Size of the largest block in bytes.
        digest: CRC-32 of the index, which contains the checksums of all blocks.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / SAMPLES
        try:
            index = (folder / INDEX).read_bytes()
        except FileNotFoundError as error:
            raise ValueError(f"{folder} contains no {INDEX}; write the samples with write_blocks") from error
        content = json.loads(index)
        self.features, self.digest = int(content["features"]), zlib.crc32(index)
        self._labels: np.ndarray | None = None
        self._row_counts, self._value_counts, self._checksums = np.array(content["blocks"], dtype=np.int64).T
        self._offsets = offsets_of((8 * self._value_counts + 5 * self._row_counts + 7) // 8 * 8)
        self.firsts, self.values = offsets_of(self._row_counts), int(self._value_counts.sum())
        self.largest = int(np.diff(self._offsets).max())
        if (size := self.file.stat().st_size) != self._offsets[-1]:
            raise ValueError(
                f"{self.file} has {size} bytes, expected {self._offsets[-1]}: the copy is incomplete. "
                "Write it again."
            )

    def __len__(self) -> int:
        return len(self._row_counts)

    def relabel(self, labels: np.ndarray) -> Self:
        """Returns the same samples with the given labels, int8 (samples,), -1 or 1. The file is unchanged."""
        blocks = copy.copy(self)
        blocks._labels = labels
        blocks.digest = zlib.crc32(labels.tobytes(), self.digest)
        return blocks

    @property
    def samples(self) -> int:
        """Number of samples in all blocks."""
        return int(self.firsts[-1])

    def read(self, number: int) -> SampleBlock:
        """Reads one block from disk.

        Raises:
            ValueError: The file is truncated, or the block does not match its checksum.
        """
        start, length = int(self._offsets[number]), int(np.diff(self._offsets[number : number + 2])[0])
        content = np.empty(length, dtype=np.uint8)
        with open(self.file, "rb", buffering=0) as file:
            file.seek(start)
            bytes_read = file.readinto(content.data)
            if hasattr(os, "posix_fadvise"):  # not on macOS
                os.posix_fadvise(file.fileno(), start, length, os.POSIX_FADV_DONTNEED)
        if bytes_read != length or zlib.crc32(content.data) != self._checksums[number]:
            raise ValueError(
                f"block {number} of {self.file} is damaged ({bytes_read} of {length} bytes read). Write "
                "the file again."
            )
        row_count, value_count = int(self._row_counts[number]), int(self._value_counts[number])
        ends = content[8 * value_count :][: 4 * row_count].view(np.int32)
        labels = content[8 * value_count + 4 * row_count :][:row_count].view(np.int8)
        if self._labels is not None:
            labels = self._labels[self.firsts[number] : self.firsts[number + 1]]
        return SampleBlock(
            number=number,
            first=int(self.firsts[number]),
            offsets=np.concatenate([np.zeros(1, np.int64), ends]),
            ids=content[: 4 * value_count].view(np.int32),
            values=content[4 * value_count : 8 * value_count].view(np.float32),
            labels=labels,
        )


class BlockStream(Iterator[SampleBlock]):
    """Iterates over all blocks cyclically, without end. A thread reads PREFETCH_BLOCKS blocks in advance.

    If the thread fails, ``next`` raises its error.
    """

    def __init__(self, blocks: SampleBlocks) -> None:
        self._blocks, self._next_number = blocks, 0
        self._reader = ThreadPoolExecutor(1, "sample-reader")
        self._pending: deque[Future[SampleBlock]] = deque()

    def __enter__(self) -> "BlockStream":
        for _ in range(PREFETCH_BLOCKS):
            self._request_next()
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.shutdown(cancel_futures=True)

    def __next__(self) -> SampleBlock:
        block = self._pending.popleft().result()
        self._request_next()
        return block

    @property
    def ready(self) -> bool:
        """Whether the next block has been read, so that ``next`` returns at once."""
        return self._pending[0].done()

    def _request_next(self) -> None:
        self._pending.append(self._reader.submit(self._blocks.read, self._next_number))
        self._next_number = (self._next_number + 1) % len(self._blocks)


# Numbers of values of the rows, feature ids, values and labels.
_RowArrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _to_blocks(
    samples: Iterable[tuple[Any, Ragged]], features: int, block_bytes: int
) -> Iterator[_RowArrays]:
    """Divides the rows of all batches into blocks of at most ``block_bytes``."""
    remaining_rows = _validate_samples(csr_matrix((0, features)), Ragged.from_rows([]), features)
    for rows, labels in samples:
        lengths, ids, values, signs = (
            np.concatenate([remaining_array, array])
            for remaining_array, array in zip(
                remaining_rows, _validate_samples(rows, labels, features), strict=True
            )
        )
        offsets = offsets_of(lengths)
        row_end_bytes = 8 * offsets[1:] + 5 * np.arange(1, len(lengths) + 1)
        begin = begin_bytes = 0
        while begin < len(lengths) and row_end_bytes[-1] - begin_bytes >= block_bytes:
            end = int(np.searchsorted(row_end_bytes, begin_bytes + block_bytes, side="right"))
            end = max(begin + 1, end)
            entries = slice(offsets[begin], offsets[end])
            yield lengths[begin:end], ids[entries], values[entries], signs[begin:end]
            begin, begin_bytes = end, int(row_end_bytes[end - 1])
        remaining_rows = lengths[begin:], ids[offsets[begin] :], values[offsets[begin] :], signs[begin:]
    if len(remaining_rows[0]):
        yield remaining_rows


def _validate_samples(rows: Any, labels: Ragged, features: int) -> _RowArrays:
    offsets, ids, values = validate_rows(rows, features)
    label_offsets, _ = validate_labels(labels, len(offsets) - 1, 1)
    return np.diff(offsets), ids, values, np.where(np.diff(label_offsets) > 0, 1, -1).astype(np.int8)
