"""Opens word vectors in any supported format, and reads and writes the formats of other programs.

==============  =========================================================================
vec             a line "words dim", then a line per word (.vec of fastText, text format of word2vec)
glove           a line per word
word2vec        binary: a line "words dim"; for each word: text, space, float32 (dim), line feed
==============  =========================================================================

A line consists of a word and its numbers. Numbers are written with nine digits, which determine a float32
exactly. Words may contain spaces (in GloVe), so the numbers are split off from the end of the line.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np

from storage.atomic import replaced_file
from tasks.fasttext.model import FastText
from tasks.fasttext.ngrams import encode

TextFormat = Literal["vec", "glove", "word2vec"]
_BLOCK_WORDS = 20_000  # words in memory at once: 24 MB with 300 dimensions
_MAX_FIRST_LINE = 1 << 20  # bytes; 65,000 dimensions in GloVe
_FIRST_LINE = re.compile(rb"(\d{1,18}) (\d{1,9}) ?\r?\n")


class VectorFileError(ValueError):
    """Raised if a word vector file is damaged or has an unknown format; the message has path and reason."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class WordTable:
    """Words and their vectors, float32 (words, dim), in memory.

    If a word is repeated, its first vector is used.
    """

    def __init__(self, words: Sequence[bytes], matrix: np.ndarray) -> None:
        self.words, self.matrix, self.dim = list(words), matrix, matrix.shape[1]
        self._rows_by_word = {word: row for row, word in reversed(list(enumerate(self.words)))}

    def vectors(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Returns the vectors of words, float32 (words, dim): zero for unknown words."""
        rows = np.array([self._rows_by_word.get(encode(word), -1) for word in words], dtype=np.int64)
        vectors = np.zeros((len(words), self.dim), dtype=np.float32)
        vectors[rows >= 0] = self.matrix[rows[rows >= 0]]
        return vectors


WordVectors = FastText | WordTable


def write_vectors(
    path: Path | str, text_format: TextFormat, words: Sequence[str | bytes], vectors: np.ndarray
) -> None:
    """Writes words and vectors to a file and replaces an existing file atomically.

    Args:
        path: The file.
        text_format: Format of the file.
        words: Words.
        vectors: Vector of each word, float32 (words, dim).

    Raises:
        ValueError: The numbers of words and vectors differ, or the format cannot represent a word.
    """
    encoded_words = [encode(word) for word in words]
    if len(encoded_words) != len(vectors):
        raise ValueError(f"{len(vectors)} vectors for {len(encoded_words)} words; give one vector per word")
    for word in encoded_words:
        if not word or b"\n" in word or (b" " in word and text_format != "glove"):
            raise ValueError(
                f"{word!r} cannot be written as {text_format}: it is empty or contains a space or a line feed"
            )
    with replaced_file(Path(path)) as new_file, new_file.open("wb") as handle:
        if text_format != "glove":
            handle.write(f"{len(encoded_words)} {vectors.shape[1]}\n".encode())
        for word, vector in zip(encoded_words, np.asarray(vectors, dtype="<f4"), strict=True):
            text = " ".join(f"{value:.9g}" for value in vector.tolist()).encode
            handle.write(word + b" " + (vector.tobytes() if text_format == "word2vec" else text()) + b"\n")


def read_vectors(path: Path | str) -> WordTable:
    """Reads a word vector file in the format .vec, GloVe or word2vec, which is detected by the content.

    Raises:
        VectorFileError: The file is damaged or has another format.
    """
    with open(path, "rb") as handle:
        first_line = handle.readline(_MAX_FIRST_LINE)
        header = _FIRST_LINE.fullmatch(first_line)
        if len(first_line) == _MAX_FIRST_LINE:
            raise VectorFileError(path, f"line 1 does not end within {_MAX_FIRST_LINE} bytes")
        if not header:
            handle.seek(0)
            return _read_lines(path, handle, None, len(first_line.split(b" ")) - 1, 1)
        word_count, dim = int(header[1]), int(header[2])
        start = handle.tell()
        size = os.fstat(handle.fileno()).st_size - start
        if dim < 1 or word_count * 2 * dim > size:
            reason = f"{size} bytes cannot contain {word_count} words with {dim} numbers"
            raise VectorFileError(path, f"{reason}, as the first line says")
        sample = handle.readline(64 + 40 * dim)
        handle.seek(start)
        if not word_count or _parse_line(sample, dim) is not None:
            return _read_lines(path, handle, word_count, dim, 2)
        return _read_binary(path, handle.read(), word_count, dim)


def _parse_line(line: bytes, dim: int) -> tuple[bytes, list[float]] | None:
    """Returns the word and the ``dim`` numbers of a line; None if the line has another format."""
    parts = line.rstrip(b" \r\n").rsplit(b" ", dim)
    try:
        return (parts[0], [float(part) for part in parts[1:]]) if len(parts) == dim + 1 else None
    except ValueError:
        return None


def _read_lines(
    path: Path | str, handle: BinaryIO, word_count: int | None, dim: int, first_line: int
) -> WordTable:
    """Reads words from a text file, from line ``first_line`` on; ``word_count`` words if it is not None."""
    if dim < 1:
        raise VectorFileError(
            path, "line 1 is not a word with numbers; expected .vec, word2vec (text, binary) or GloVe"
        )
    words, rows, line_number = [], [np.zeros((0, dim), dtype=np.float32)], first_line
    max_bytes = 65_536 + 64 * dim  # limit of a line, so that a file without line feeds is not read completely
    while line := handle.readline(max_bytes):
        parsed_line = _parse_line(line, dim)
        if parsed_line is None:
            raise VectorFileError(
                path, f"line {line_number} is {line[:60]!r}, expected a word and {dim} numbers"
            )
        words.append(parsed_line[0])
        rows.append(np.array([parsed_line[1]], dtype=np.float32))
        line_number += 1
    if word_count not in (None, len(words)):
        reason = f"expected {word_count} words, as in the first line, but it has {len(words)}"
        raise VectorFileError(path, f"{reason}: it is truncated, or lines are missing")
    return WordTable(words, np.concatenate(rows))


def _read_binary(path: Path | str, content: bytes, word_count: int, dim: int) -> WordTable:
    words, rows, position = [], [np.zeros((0, dim), dtype=np.float32)], 0
    for number in range(word_count):
        while content[position : position + 1] == b"\n":  # not all writers end a vector with a line feed
            position += 1
        end = content.find(b" ", position)
        if end < 0 or end + 1 + 4 * dim > len(content):
            reason = f"word {number} of {word_count} does not end within the file"
            raise VectorFileError(path, f"{reason}: it is truncated, or not a word2vec file")
        words.append(content[position:end])
        rows.append(np.frombuffer(content, dtype="<f4", count=dim, offset=end + 1)[None])
        position = end + 1 + 4 * dim
    if content[position:].strip(b"\n"):
        raise VectorFileError(path, f"{len(content) - position} bytes follow the last of {word_count} words")
    return WordTable(words, np.concatenate(rows))


def open_words(path: Path | str) -> WordVectors:
    """Opens word vectors: a fastText model or a word vector file.

    The format is detected from the content.

    Raises:
        FastTextError: A fastText model is damaged.
        VectorFileError: A word vector file is damaged or has an unknown format.
    """
    source = Path(path)
    with open(source, "rb") as handle:
        first_bytes = handle.read(64)
    is_binary = not re.match(rb"\d+ \d+ ?\r?\n", first_bytes) and (b"\0" in first_bytes or not first_bytes)
    return FastText.open(source) if is_binary else read_vectors(source)


def nearest_words(model: WordVectors, word: str | bytes, k: int) -> list[tuple[str, float]]:
    """Returns the k words with the highest cosine similarity to a word, and the cosines, best first.

    The word itself is excluded. It may be absent from the model. The words of the model are processed in
    blocks, so that their vectors need not fit into memory. Invalid UTF-8 is escaped in the result.
    """
    words, query = model.words, model.vectors([word])[0]
    query = query / max(float(np.linalg.norm(query)), 1e-12)
    best_cosines, numbers = np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int64)
    for start in range(0, len(words), _BLOCK_WORDS):
        vectors = model.vectors(words[start : start + _BLOCK_WORDS])
        cosines = (vectors @ query) / np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)
        best_cosines = np.append(best_cosines, cosines)
        numbers = np.append(numbers, np.arange(start, start + len(cosines)))
        best_order = np.argsort(-best_cosines, kind="stable")[: k + 1]
        best_cosines, numbers = best_cosines[best_order], numbers[best_order]
    names = [words[number] for number in numbers]
    pairs = [pair for pair in zip(names, best_cosines.tolist(), strict=True) if pair[0] != encode(word)]
    return [(name.decode("utf-8", "backslashreplace"), cosine) for name, cosine in pairs[:k]]
