"""Word vectors in the forms that other programs read and write.

==============  =========================================================================
vec             a line "words dim", then a line a word: fastText's .vec, word2vec's text
glove           the same without the first line
word2vec        binary: a line "words dim", then the word, a space, float32 (dim), a line feed
==============  =========================================================================

Numbers are written with nine digits, so that a float32 comes back to the bit. A line is taken apart from its end: a word
may hold spaces (GloVe's do).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np

from tasks.augment.ngrams import encode

TextForm = Literal["vec", "glove", "word2vec"]
_HEADER = re.compile(rb"(\d{1,18}) (\d{1,9}) ?\r?\n")


class VectorFileError(ValueError):
    """A file of word vectors that cannot be read; the message names the line or the byte."""


class WordTable:
    """Words with a vector each.

    Args:
        words: Distinct; of doubles the first counts.
        matrix: float32 (words, dim).
    """

    def __init__(self, words: Sequence[bytes], matrix: np.ndarray) -> None:
        self.words, self.matrix = list(words), matrix
        self._places: dict[bytes, int] = {}
        for place, word in enumerate(self.words):
            self._places.setdefault(word, place)

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return self.matrix.shape[1]

    def known(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Whether each word has a vector: bool (words,)."""
        return np.array([encode(word) in self._places for word in words], dtype=bool)

    def vectors(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Vectors of words: float32 (words, dim), zero for an unknown one."""
        places = np.array([self._places.get(encode(word), -1) for word in words], dtype=np.int64)
        return np.where(places[:, None] >= 0, self.matrix[places], np.float32(0)) if len(self.words) and len(places) else np.zeros((len(places), self.dim), dtype=np.float32)


def write_vectors(path: Path | str, form: TextForm, words: Sequence[str | bytes], vectors: np.ndarray) -> None:
    """Writes words and vectors in one rename.

    Args:
        path: File to write; what is there is replaced.
        form: See the table above.
        words: One a row.
        vectors: float32 (words, dim).

    Raises:
        ValueError: A word with a line feed or, but for GloVe's form, with a space: no program would read it back.
    """
    encoded = [encode(word) for word in words]
    bad = next((word for word in encoded if not word or b"\n" in word or (b" " in word and form != "glove")), None)
    if bad is not None or len(encoded) != len(vectors):
        raise ValueError(f"{len(vectors)} vectors for {len(encoded)} words" if bad is None else f"{bad!r} cannot be written as {form}: it is empty or holds a space or a line feed")
    place = Path(path)
    fresh = place.with_name(place.name + ".tmp")
    try:
        with open(fresh, "wb") as handle:
            if form != "glove":
                handle.write(f"{len(encoded)} {vectors.shape[1]}\n".encode())
            for word, vector in zip(encoded, np.asarray(vectors, dtype="<f4"), strict=True):
                numbers = vector.tobytes() if form == "word2vec" else " ".join(f"{value:.9g}" for value in vector.tolist()).encode()
                handle.write(word + b" " + numbers + b"\n")
        os.replace(fresh, place)
    finally:
        fresh.unlink(missing_ok=True)


def read_vectors(path: Path | str, keep: Callable[[bytes], bool] | None = None) -> WordTable:
    """Reads any of the three forms; which one is seen from the first bytes.

    Args:
        path: File to read.
        keep: Words for which it is true are kept; None keeps all. The file is read in one pass; of lines that are not kept
            numbers are counted, not read.

    Raises:
        VectorFileError: It is none of them, or damaged.
        OSError: It cannot be opened.
    """
    with open(path, "rb") as handle:
        first = handle.readline(4096)
        header = _HEADER.fullmatch(first)
        if not header:
            handle.seek(0)
            return _read_lines(Path(path), handle, None, len(first.split(b" ")) - 1, keep, 1)
        words, dim = int(header[1]), int(header[2])
        start = handle.tell()
        size = os.fstat(handle.fileno()).st_size - start
        if dim < 1 or words * 2 * dim > size:
            raise VectorFileError(f"{path}: its first line says {words} words of {dim}, which {size} bytes cannot hold")
        sample = handle.readline(64 + 40 * dim)
        handle.seek(start)
        if not words or _numbers(sample, dim) is not None:
            return _read_lines(Path(path), handle, words, dim, keep, 2)
        return _read_binary(Path(path), handle, words, dim, keep)


def _numbers(line: bytes, dim: int, keep: Callable[[bytes], bool] | None = None) -> tuple[bytes, list[float]] | None:
    """Word and numbers of a line (no numbers where the word is not to be kept: they are most of the work); None if it has not so many."""
    parts = line.rstrip(b" \r\n").rsplit(b" ", dim)
    if len(parts) != dim + 1:
        return None
    if keep is not None and not keep(parts[0]):
        return parts[0], []
    try:
        return parts[0], [float(part) for part in parts[1:]]
    except ValueError:
        return None


def _read_lines(path: Path, handle: BinaryIO, words: int | None, dim: int, keep: Callable[[bytes], bool] | None, first: int) -> WordTable:
    if dim < 1:
        raise VectorFileError(f"{path}: line 1 is no word with numbers; known are .vec, word2vec (text, binary) and GloVe")
    found, rows, seen = [], [], 0
    for number, line in enumerate(_lines(handle, dim), first):
        seen += 1
        parsed = _numbers(line, dim, keep)
        if parsed is None:
            raise VectorFileError(f"{path}: line {number} is {line[:60]!r}, expected a word and {dim} numbers")
        if parsed[1]:
            found.append(parsed[0])
            rows.append(np.array(parsed[1], dtype=np.float32))
    if words is not None and seen != words:
        raise VectorFileError(f"{path}: its first line says {words} words, it has {seen}: it is cut short, or lines are missing")
    return WordTable(found, np.stack(rows) if rows else np.zeros((0, dim), dtype=np.float32))


def _lines(handle: BinaryIO, dim: int) -> Iterable[bytes]:
    """Lines, none longer than it can be: a file without line feeds is no reason to read it whole."""
    while line := handle.readline(65_536 + 64 * dim):
        yield line


def _read_binary(path: Path, handle: BinaryIO, words: int, dim: int, keep: Callable[[bytes], bool] | None) -> WordTable:
    content = handle.read()
    found, rows, place = [], [], 0
    for number in range(words):
        while place < len(content) and content[place] == 10:  # some writers end a vector with a line feed, some do not
            place += 1
        end = content.find(b" ", place)
        if end < 0 or end + 1 + 4 * dim > len(content):
            raise VectorFileError(f"{path}: word {number} of {words} does not end within the file: it is cut short, or no word2vec file")
        if keep is None or keep(content[place:end]):
            found.append(content[place:end])
            rows.append(np.frombuffer(content, dtype="<f4", count=dim, offset=end + 1))
        place = end + 1 + 4 * dim
    if content[place:].strip(b"\n"):
        raise VectorFileError(f"{path}: {len(content) - place} bytes follow the last of {words} words")
    return WordTable(found, np.stack(rows) if rows else np.zeros((0, dim), dtype=np.float32))
