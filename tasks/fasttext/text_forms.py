"""Files of word vectors: opening any, and the forms that other programs read and write.

==============  =========================================================================
vec             a line "words dim", then a line a word: fastText's .vec, word2vec's text
glove           the same without the first line
word2vec        binary: a line "words dim", then the word, a space, float32 (dim), a line feed
==============  =========================================================================

Numbers are written with nine digits, so that a float32 comes back to the bit. A line is taken apart from its
end: a word may hold spaces (GloVe's do).
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Literal, NoReturn

import numpy as np

from tasks.fasttext.compact import STORE, CompactStore, find_words
from tasks.fasttext.model import FastText
from tasks.fasttext.ngrams import encode
from tasks.fasttext.writer import replaced

TextForm = Literal["vec", "glove", "word2vec"]
_BLOCK = 20_000  # words: 24 MB of 300 dimensions
_HEADER = re.compile(rb"(\d{1,18}) (\d{1,9}) ?\r?\n")


class VectorFileError(ValueError):
    """A file of word vectors that cannot be read; the message names the line or the byte."""


class WordTable:
    """Words with a vector each, float32 (words, dim); of doubles the first counts."""

    def __init__(self, words: Sequence[bytes], matrix: np.ndarray) -> None:
        self.words, self.matrix, self.dim = list(words), matrix, matrix.shape[1]
        self._places = {word: place for place, word in reversed(list(enumerate(self.words)))}

    def vectors(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Vectors of words: float32 (words, dim), zero for an unknown one."""
        places = find_words(self._places, words)
        vectors = np.zeros((len(words), self.dim), dtype=np.float32)
        vectors[places >= 0] = self.matrix[places[places >= 0]]
        return vectors


WordVectors = FastText | CompactStore | WordTable


def write_vectors(
    path: Path | str, form: TextForm, words: Sequence[str | bytes], vectors: np.ndarray
) -> None:
    """Writes words and vectors, float32 (words, dim), in one rename; an existing file is replaced."""
    encoded = [encode(word) for word in words]
    if len(encoded) != len(vectors):
        raise ValueError(f"{len(vectors)} vectors for {len(encoded)} words")
    for word in encoded:
        if not word or b"\n" in word or (b" " in word and form != "glove"):
            wrong = "it is empty or holds a space or a line feed"  # no program would read it back
            raise ValueError(f"{word!r} cannot be written as {form}: {wrong}")
    with replaced(path) as handle:
        if form != "glove":
            handle.write(f"{len(encoded)} {vectors.shape[1]}\n".encode())
        for word, vector in zip(encoded, np.asarray(vectors, dtype="<f4"), strict=True):
            text = " ".join(f"{value:.9g}" for value in vector.tolist()).encode
            handle.write(word + b" " + (vector.tobytes() if form == "word2vec" else text()) + b"\n")


def read_vectors(path: Path | str) -> WordTable:
    """Reads any of the three forms, told apart by the first bytes, in one pass; else VectorFileError."""
    with open(path, "rb") as handle:
        first = handle.readline(4096)
        header = _HEADER.fullmatch(first)
        if not header:
            handle.seek(0)
            return _read_lines(path, handle, None, len(first.split(b" ")) - 1, 1)
        words, dim = int(header[1]), int(header[2])
        start = handle.tell()
        size = os.fstat(handle.fileno()).st_size - start
        if dim < 1 or words * 2 * dim > size:
            _fail(path, f"its first line says {words} words of {dim}, which {size} bytes cannot hold")
        sample = handle.readline(64 + 40 * dim)
        handle.seek(start)
        if not words or _numbers(sample, dim) is not None:
            return _read_lines(path, handle, words, dim, 2)
        return _read_binary(path, handle.read(), words, dim)


def _fail(path: Path | str, reason: str) -> NoReturn:
    raise VectorFileError(f"{path}: {reason}")


def _numbers(line: bytes, dim: int) -> tuple[bytes, list[float]] | None:
    """Word and numbers of a line; None if it has not so many."""
    parts = line.rstrip(b" \r\n").rsplit(b" ", dim)
    try:
        return (parts[0], [float(part) for part in parts[1:]]) if len(parts) == dim + 1 else None
    except ValueError:
        return None


def _read_lines(path: Path | str, handle: BinaryIO, words: int | None, dim: int, first: int) -> WordTable:
    if dim < 1:
        _fail(path, "line 1 is no word with numbers; known are .vec, word2vec (text, binary) and GloVe")
    found, rows, number = [], [np.zeros((0, dim), dtype=np.float32)], first
    most = 65_536 + 64 * dim  # no line is longer: a file without line feeds is not read whole
    while line := handle.readline(most):
        parsed = _numbers(line, dim)
        if parsed is None:
            _fail(path, f"line {number} is {line[:60]!r}, expected a word and {dim} numbers")
        found.append(parsed[0])
        rows.append(np.array([parsed[1]], dtype=np.float32))
        number += 1
    if words not in (None, number - first):
        missing = f"it has {number - first}: it is cut short, or lines are missing"
        _fail(path, f"its first line says {words} words, {missing}")
    return WordTable(found, np.concatenate(rows))


def _read_binary(path: Path | str, content: bytes, words: int, dim: int) -> WordTable:
    found, rows, place = [], [np.zeros((0, dim), dtype=np.float32)], 0
    for number in range(words):
        while content[place : place + 1] == b"\n":  # some writers end a vector with a line feed, some do not
            place += 1
        end = content.find(b" ", place)
        if end < 0 or end + 1 + 4 * dim > len(content):
            reason = "does not end within the file: it is cut short, or no word2vec file"
            _fail(path, f"word {number} of {words} {reason}")
        found.append(content[place:end])
        rows.append(np.frombuffer(content, dtype="<f4", count=dim, offset=end + 1)[None])
        place = end + 1 + 4 * dim
    if content[place:].strip(b"\n"):
        _fail(path, f"{len(content) - place} bytes follow the last of {words} words")
    return WordTable(found, np.concatenate(rows))


def open_words(path: Path | str) -> WordVectors:
    """Opens a fastText model, a file of any text form or the folder of a compact store, by its content;
    FastTextError or VectorFileError if it is damaged or none.
    """
    place = Path(path)
    if (place / STORE).exists():
        return CompactStore.open(place)
    with open(place, "rb") as handle:
        head = handle.read(64)
    binary = not re.match(rb"\d+ \d+ ?\r?\n", head) and (b"\0" in head or not head)
    return FastText.open(place) if binary else read_vectors(place)


def nearest_words(model: WordVectors, word: str | bytes, k: int) -> list[tuple[str, float]]:
    """The k words of a model with the highest cosine to a word (any, left out itself), and the cosines.

    In blocks: a large model is never held as one matrix of word vectors. Bytes that are no UTF-8 become
    escapes.
    """
    words = model.dictionary.words() if isinstance(model, FastText) else model.words
    query = model.vectors([word])[0]
    query = query / max(float(np.linalg.norm(query)), 1e-12)
    best, places = np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int64)
    for start in range(0, len(words), _BLOCK):
        vectors = model.vectors(words[start : start + _BLOCK])
        cosines = (vectors @ query) / np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)
        best, places = np.append(best, cosines), np.append(places, np.arange(start, start + len(cosines)))
        top = np.argsort(-best, kind="stable")[: k + 1]
        best, places = best[top], places[top]
    names = [words[place] for place in places]
    found = [pair for pair in zip(names, best.tolist(), strict=True) if pair[0] != encode(word)]
    return [(name.decode("utf-8", "backslashreplace"), cosine) for name, cosine in found[:k]]
