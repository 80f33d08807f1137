"""A fastText model that answers from the file: opening maps it and scans the dictionary, vectors read the rows they need.

Equal to the fasttext package to the bit: sums in float32 in the same order, multiplied by float32(1 / n).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from storage.arrays import Ragged
from tasks.augment.fasttext.dictionary import EOS, Dictionary, read_dictionary
from tasks.augment.fasttext.layout import Cursor, Header, read_header
from tasks.augment.fasttext.matrices import Dense, Matrix, read_matrix, sum_rows
from tasks.augment.ngrams import PIECE, bucket_piece, cut, enclose, encode

_CHUNK = 65_536  # words at once: their n-grams take about 100 MB


class Ngram(NamedTuple):
    """An n-gram of a word (or the word itself), its row of the input matrix, and that row."""

    text: str
    row: int
    vector: np.ndarray


class FastText:
    """A model file.

    Args:
        header: What it was trained with.
        dictionary: Its words and labels.
        matrix: Input rows: words, then n-gram buckets.
        output: Output rows, for those who need them.
    """

    def __init__(self, header: Header, dictionary: Dictionary, matrix: Matrix, output: Matrix) -> None:
        self.header, self.dictionary, self.matrix, self.output = header, dictionary, matrix, output

    @staticmethod
    def open(path: Path | str) -> FastText:
        """Maps a model file: .bin of version 11 or 12 or older, .ftz.

        Raises:
            FastTextError: It is none, or it is damaged; names the byte and the reason.
            OSError: It cannot be read.
        """
        cursor = Cursor(Path(path))
        header = read_header(cursor)
        dictionary = read_dictionary(cursor, with_pruning=header.version > 0, buckets=header.bucket)
        quantised = _read_flag(cursor, "the input matrix is quantised") if header.version else False
        if dictionary.pruned is not None and not quantised:
            cursor.fail("n-grams are pruned but the matrix is dense: fastText's rows and buckets would not match (its issue 332)", 1)
        kept = header.bucket if dictionary.pruned is None else len(dictionary.pruned[0])
        begin = cursor.offset
        matrix = read_matrix(cursor, "input", rows=dictionary.word_count + kept, dim=header.dim, quantised=quantised)
        if isinstance(matrix, Dense) and hasattr(mmap, "MADV_RANDOM"):  # else the kernel reads 128 KB around every row
            page = begin - begin % mmap.PAGESIZE
            cursor.data.madvise(mmap.MADV_RANDOM, page, cursor.offset - page)
        flag = _read_flag(cursor, "the output matrix is quantised") if header.version else False
        rows = len(dictionary) - dictionary.word_count if header.supervised else dictionary.word_count
        output = read_matrix(cursor, "output", rows=rows, dim=header.dim, quantised=quantised and flag)
        if cursor.offset != cursor.size:
            cursor.fail(f"the model ends here, the file has {cursor.size - cursor.offset} bytes more: a size before is wrong, or the file is damaged")
        return FastText(header, dictionary, matrix, output)

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return self.header.dim

    def vectors(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Vectors of words, in the dictionary or not: float32 (words, dim); a word without any row is zero."""
        result = np.empty((len(words), self.dim), dtype=np.float32)
        for start in range(0, len(words), _CHUNK):
            ids = self.rows(words[start : start + _CHUNK])
            result[start : start + _CHUNK] = _mean(sum_rows(self.matrix, ids, self.dim), ids.lengths)
        return result

    def known(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Whether each word has a row or an n-gram with one: bool (words,)."""
        return self.rows(words).lengths > 0

    def rows(self, words: Sequence[str | bytes]) -> Ragged:
        """Rows that make up each word: its own, if it is in the dictionary, then its n-grams'."""
        pieces = [enclose(words[start : start + PIECE]) for start in range(0, len(words), PIECE)] or [enclose([])]
        return Ragged.concatenate([self._rows(*piece) for piece in pieces])

    def _rows(self, text: bytes, begins: np.ndarray) -> Ragged:
        """Of so many words as stay in the processor's cache."""
        own = self._own_rows(text, begins)
        known = own >= 0
        found = bucket_piece(text, begins, self.header.minn, self.header.maxn, max(self.header.bucket, 1), room=known)
        rows = self.dictionary.bucket_rows(found.values)
        rows[found.offsets[:-1][known]] = own[known]
        bare = self._bare(text, begins)
        if self.dictionary.pruned is None and not len(bare):
            return Ragged(found.offsets, rows)
        kept = rows >= 0
        for word in bare:
            kept[found.offsets[word] + known[word] : found.offsets[word + 1]] = False
        return Ragged(np.append(0, np.cumsum(kept))[found.offsets], rows[kept])

    def _bare(self, text: bytes, begins: np.ndarray) -> np.ndarray:
        """Which words have no n-grams: the end of a sentence, but for files older than versions, whose .vec show that it had them."""
        whole = b"<" + EOS + b">"
        if self.header.version == 0 or whole not in text:
            return np.zeros(0, dtype=np.int64)
        return np.array([word for word in np.flatnonzero(np.diff(begins) == len(whole)) if text.startswith(whole, begins[word])], dtype=np.int64)

    def _own_rows(self, text: bytes, begins: np.ndarray) -> np.ndarray:
        """Rows of the words themselves, -1 for unknown ones. A label is none: its number is beyond the words' rows (the package reads what lies there)."""
        own = self.dictionary.find(text, begins[:-1] + 1, np.diff(begins) - 2)
        return np.where(own < self.dictionary.word_count, own, -1)

    def ngrams(self, words: Sequence[str | bytes]) -> list[list[Ngram]]:
        """Each word's n-grams with their rows, aligned also where pruning dropped some (which are then left out).

        A word of the dictionary itself comes first, with its own row.
        """
        found = cut(words, self.header.minn, self.header.maxn)
        rows = self.dictionary.bucket_rows(found.hashes.astype(np.int64) % max(self.header.bucket, 1))
        result = []
        text, begins = enclose(words)
        bare = self._bare(text, begins)
        for number, (word, own) in enumerate(zip(words, self._own_rows(text, begins), strict=True)):
            part = slice(found.offsets[number], found.offsets[number] if number in bare else found.offsets[number + 1])
            pairs = [(encode(word), int(own))] if own >= 0 else []
            pairs += [(name, row) for name, row in zip(found.names(number), rows[part].tolist(), strict=False) if row >= 0]
            vectors = self.matrix.take(np.array([row for _, row in pairs], dtype=np.int64))
            result.append([Ngram(name.decode("utf-8", "backslashreplace"), row, vector) for (name, row), vector in zip(pairs, vectors, strict=True)])
        return result


def _mean(sums: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    return sums * (1.0 / np.maximum(lengths, 1)).astype(np.float32)[:, None]


def _read_flag(cursor: Cursor, what: str) -> bool:
    (value,) = cursor.read(struct.Struct("<B"), f"whether {what}")
    if value > 1:
        cursor.fail(f"whether {what} is {value}, it should be 0 or 1", 1)
    return bool(value)
