"""Writes fastText's .bin, version 12, dense: a file that the fasttext package and gensim load.

Rows come in blocks: a model of many gigabytes is written with the memory of one block.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tasks.augment.fasttext.layout import Header

Entries = Sequence[tuple[bytes, int]]


def write_bin(path: Path | str, header: Header, words: Entries, rows: Iterable[np.ndarray], output: Iterable[np.ndarray], labels: Entries = ()) -> None:
    """Writes a model file in one rename.

    Args:
        path: File to write; what is there is replaced.
        header: What it says of itself; the version is always 12.
        words: Word and count, most frequent first.
        rows: Blocks of the input matrix, float32 (any, dim): a row a word, then a row a bucket.
        output: Blocks of the output matrix: a row a word; of a supervised model a row a label.
        labels: Label and count, of a supervised model.

    Raises:
        ValueError: A word that the format cannot hold, or another number of rows than it asks for.
    """
    for word, count in (*words, *labels):
        if not word or b"\0" in word or not 0 <= count < 2**63:
            raise ValueError(f"{word!r} with count {count}: a word has one byte or more and no zero byte, a count is 0 or more")
    place = Path(path)
    fresh = place.with_name(place.name + ".tmp")
    try:
        with open(fresh, "wb") as handle:
            handle.write(replace(header, version=12).pack())
            handle.write(struct.pack("<3iqq", len(words) + len(labels), len(words), len(labels), sum(count for _, count in (*words, *labels)), -1))
            for kind, entries in enumerate((words, labels)):
                handle.write(b"".join(word + struct.pack("<Bqb", 0, count, kind) for word, count in entries))
            _write_matrix(handle, "input", len(words) + header.bucket, header.dim, rows)
            _write_matrix(handle, "output", len(labels) if header.supervised else len(words), header.dim, output)
        os.replace(fresh, place)
    finally:
        fresh.unlink(missing_ok=True)


def _write_matrix(handle: BinaryIO, what: str, rows: int, dim: int, blocks: Iterable[np.ndarray]) -> None:
    handle.write(struct.pack("<Bqq", 0, rows, dim))
    written = 0
    for block in blocks:
        if block.ndim != 2 or block.shape[1] != dim:
            raise ValueError(f"a block of the {what} matrix has shape {block.shape}, expected rows of {dim}")
        handle.write(np.ascontiguousarray(block, dtype="<f4").data)
        written += len(block)
    if written != rows:
        raise ValueError(f"the {what} matrix got {written} rows, its header asks for {rows}")
