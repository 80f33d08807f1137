"""Writes fastText .bin files (version 12, not quantised), which the packages fasttext and gensim can load.

Matrices are written in blocks, so that a model may be larger than the memory.
"""

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from storage.atomic import replaced_file
from tasks.fasttext.layout import Header

Entries = Sequence[tuple[bytes, int]]  # (word or label, count)


def write_bin(
    path: Path | str,
    header: Header,
    words: Entries,
    rows: Iterable[np.ndarray],
    output: Iterable[np.ndarray],
    labels: Entries = (),
) -> None:
    """Writes a fastText model to a file of version 12 and replaces an existing file atomically.

    Args:
        path: The file.
        header: Training arguments of the model.
        words: Words with their counts, by descending count.
        rows: Blocks of the input matrix, float32 (block rows, dim). The matrix has a row for each word,
            followed by a row for each n-gram bucket.
        output: Blocks of the output matrix, which has a row for each word or, in a supervised model, label.
        labels: Labels with their counts.

    Raises:
        ValueError: The format cannot represent a word or count, or a matrix has the wrong shape.
    """
    entries = [*words, *labels]
    for word, count in entries:
        if not word or b"\0" in word or not 0 <= count < 2**63:
            raise ValueError(
                f"{word!r} with count {count}: words must have at least one byte and no zero byte, "
                "counts must be at least 0"
            )
    with replaced_file(Path(path)) as new_file, new_file.open("wb") as handle:
        tokens = sum(count for _, count in entries)
        handle.write(header.pack() + struct.pack("<3iqq", len(entries), len(words), len(labels), tokens, -1))
        for kind, kind_entries in enumerate((words, labels)):
            handle.write(b"".join(word + struct.pack("<Bqb", 0, count, kind) for word, count in kind_entries))
        _write_matrix(handle, "input", len(words) + header.bucket, header.dim, rows)
        _write_matrix(handle, "output", len(labels if header.supervised else words), header.dim, output)


def _write_matrix(
    handle: BinaryIO, matrix_name: str, rows: int, dim: int, blocks: Iterable[np.ndarray]
) -> None:
    handle.write(struct.pack("<Bqq", 0, rows, dim))
    row_count = 0
    for block in blocks:
        if block.ndim != 2 or block.shape[1] != dim:
            raise ValueError(
                f"a block of the {matrix_name} matrix has shape {block.shape}, expected rows of {dim}"
            )
        handle.write(np.ascontiguousarray(block, dtype="<f4").data)
        row_count += len(block)
    if row_count != rows:
        raise ValueError(f"the {matrix_name} matrix got {row_count} rows, but the header requires {rows}")
