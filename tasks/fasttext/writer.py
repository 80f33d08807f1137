"""Writes fastText's .bin, version 12, dense: a file that the fasttext package and gensim load.

Rows come in blocks: a model of many gigabytes is written with the memory of one block.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from storage.atomic import replaced_file
from tasks.fasttext.layout import Header

Entries = Sequence[tuple[bytes, int]]


@contextmanager
def replaced(path: Path | str) -> Iterator[BinaryIO]:
    """A file to write that takes the place of ``path`` when the block ends without an error."""
    with replaced_file(Path(path)) as new, open(new, "wb") as handle:
        yield handle


def write_bin(
    path: Path | str,
    header: Header,
    words: Entries,
    rows: Iterable[np.ndarray],
    output: Iterable[np.ndarray],
    labels: Entries = (),
) -> None:
    """Writes a model file in one rename; an existing one is replaced, the version is always 12.

    ``words`` and ``labels`` are entries with their counts, words by falling count. ``rows`` are blocks of the
    input matrix, float32 (any, dim): a row a word, then a row a bucket; ``output`` blocks of the output
    matrix: a row a word, of a supervised model a row a label.
    """
    entries = [*words, *labels]
    for word, count in entries:
        if not word or b"\0" in word or not 0 <= count < 2**63:
            expected = "a word has one byte or more and no zero byte, a count is 0 or more"
            raise ValueError(f"{word!r} with count {count}: {expected}")
    with replaced(path) as handle:
        tokens = sum(count for _, count in entries)
        handle.write(header.pack() + struct.pack("<3iqq", len(entries), len(words), len(labels), tokens, -1))
        for kind, own in enumerate((words, labels)):
            handle.write(b"".join(word + struct.pack("<Bqb", 0, count, kind) for word, count in own))
        _write_matrix(handle, "input", len(words) + header.bucket, header.dim, rows)
        _write_matrix(handle, "output", len(labels if header.supervised else words), header.dim, output)


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
