"""A fastText model that answers from the file: opening maps it and scans the dictionary, vectors read the
rows they need.

Equal to the fasttext package to the bit: sums in float32 in the same order, multiplied by float32(1 / n).
"""

import mmap
import re
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from storage.arrays import Ragged
from tasks.fasttext.dictionary import EOS, Dictionary, keep, read_dictionary
from tasks.fasttext.layout import Cursor, Header, read_header
from tasks.fasttext.matrices import Matrix, mean_rows, read_matrix, sum_rows
from tasks.fasttext.ngrams import PIECE, bucket_ids, bucket_piece, cut, enclose, encode, hash_strings

_CHUNK = 65_536  # words at once: their n-grams take about 100 MB
_LABEL = b"__label__"  # the prefix is not stored; fastText too takes its default when it loads a model
_MIX = 116049371


class Ngram(NamedTuple):
    """An n-gram of a word (or the word itself), its row of the input matrix, and that row."""

    text: str
    row: int
    vector: np.ndarray


class FastText(NamedTuple):
    """A model file: its header, its words and labels, input rows (words, then n-gram buckets) and output
    rows.
    """

    header: Header
    dictionary: Dictionary
    matrix: Matrix
    output: Matrix

    @staticmethod
    def open(path: Path | str) -> "FastText":
        """Maps a model file: .bin of version 11, 12 or older, .ftz; else FastTextError names the byte."""
        cursor = Cursor(Path(path))
        header = read_header(cursor)
        dictionary = read_dictionary(cursor, with_pruning=header.version > 0, buckets=header.bucket)
        quantised = header.version > 0 and cursor.read_flag("the input matrix is quantised")
        if dictionary.pruned is not None and not quantised:
            reason = "fastText's rows and buckets would not match (its issue 332)"
            cursor.fail(f"n-grams are pruned but the matrix is dense: {reason}", 1)
        kept = header.bucket if dictionary.pruned is None else len(dictionary.pruned[0])
        begin, words, dim = cursor.offset, dictionary.word_count, header.dim
        matrix = read_matrix(cursor, "input", rows=words + kept, dim=dim, quantised=quantised)
        if not quantised and hasattr(mmap, "MADV_RANDOM"):  # else 128 KB are read around every row
            page = begin - begin % mmap.PAGESIZE
            cursor.data.madvise(mmap.MADV_RANDOM, page, cursor.offset - page)
        quantised &= header.version > 0 and cursor.read_flag("the output matrix is quantised")
        rows = len(dictionary) - words if header.supervised else words
        output = read_matrix(cursor, "output", rows=rows, dim=dim, quantised=quantised)
        if more := cursor.size - cursor.offset:
            cursor.fail(f"the model ends here, {more} bytes follow: a size before is wrong or it is damaged")
        return FastText(header, dictionary, matrix, output)

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return self.header.dim

    def vectors(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Vectors of known and unknown words: float32 (words, dim); a word without any row is zero."""
        result = np.empty((len(words), self.dim), dtype=np.float32)
        for start in range(0, len(words), _CHUNK):
            ids = self.rows(words[start : start + _CHUNK])
            result[start : start + _CHUNK] = mean_rows(sum_rows(self.matrix.take, ids, self.dim), ids.lengths)
        return result

    def known(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Whether each word has a row or an n-gram with one: bool (words,)."""
        return self.rows(words).lengths > 0

    def rows(self, words: Sequence[str | bytes]) -> Ragged:
        """Rows that make up each word: its own, if it is in the dictionary, then its n-grams'."""
        pieces = [enclose(words[start : start + PIECE]) for start in range(0, max(len(words), 1), PIECE)]
        return Ragged.concatenate([self._rows(*piece) for piece in pieces])

    def _rows(self, text: bytes, begins: np.ndarray) -> Ragged:
        own = self._own_rows(text, begins)
        known, header = own >= 0, self.header
        found = bucket_piece(text, begins, header.minn, header.maxn, max(header.bucket, 1), known)
        rows = Ragged(found.offsets, self.dictionary.bucket_rows(found.values))
        for word in self._without_ngrams(text, begins):
            rows[word][:] = -1
        rows.values[found.offsets[:-1][known]] = own[known]
        return rows if rows.values.min(initial=0) >= 0 else keep(rows, rows.values >= 0)

    def _without_ngrams(self, text: bytes, begins: np.ndarray) -> list[int]:
        # The end of a sentence, but for files older than versions, whose .vec show that it had n-grams.
        whole = b"<" + EOS + b">"
        if self.header.version == 0 or whole not in text:
            return []
        alike = np.flatnonzero(np.diff(begins) == len(whole)).tolist()
        return [word for word in alike if text.startswith(whole, begins[word])]

    def _own_rows(self, text: bytes, begins: np.ndarray) -> np.ndarray:
        # A label is no word: its number is beyond the words' rows (the package reads what lies there).
        own = self.dictionary.find(text, begins[:-1] + 1, np.diff(begins) - 2)
        return np.where(own < self.dictionary.word_count, own, -1)

    def ngrams(self, words: Sequence[str | bytes]) -> list[list[Ngram]]:
        """Each word's n-grams with their rows; those that pruning dropped are left out. A word of the
        dictionary comes first itself, with its own row.
        """
        header = self.header
        buckets = bucket_ids(words, header.minn, header.maxn, max(header.bucket, 1))
        text, begins = enclose(words)
        bare, result = self._without_ngrams(text, begins), []
        for number, (word, own) in enumerate(zip(words, self._own_rows(text, begins).tolist(), strict=True)):
            names = [encode(word), *cut(word, header.minn, header.maxn)]
            rows = [own, *self.dictionary.bucket_rows(buckets[number])]
            pairs = list(zip(names, rows, strict=True))[: 1 if number in bare else None]
            pairs = [(name.decode("utf-8", "backslashreplace"), int(row)) for name, row in pairs if row >= 0]
            vectors = self.matrix.take(np.array([row for _, row in pairs], dtype=np.int64))
            result.append([Ngram(*pair, vector) for pair, vector in zip(pairs, vectors, strict=True)])
        return result


def sentence_vectors(model: FastText, sentences: Sequence[str | bytes]) -> np.ndarray:
    """Vectors of sentences, a line each, as fastText makes them: float32 (sentences, dim). Of word vector
    models the mean of the words' unit vectors, words without a vector not counted; of supervised models the
    mean of the input rows of words, n-grams, word n-grams and the end of the sentence.
    """
    vectors = np.zeros((len(sentences), model.dim), dtype=np.float32)
    for number, sentence in enumerate(map(encode, sentences)):
        if b"\n" in sentence:
            byte = sentence.index(10)
            raise ValueError(f"sentence {number} holds a line feed at byte {byte}; give a line each")
        vectors[number] = (_supervised if model.header.supervised else _unsupervised)(model, sentence)
    return vectors


def _unsupervised(model: FastText, sentence: bytes) -> np.ndarray:
    total, count = np.zeros(model.dim, dtype=np.float32), 0
    for vector in model.vectors([word for word in re.split(rb"[ \t\v\f\r]+", sentence) if word]):
        norm = np.sqrt(np.add.accumulate(vector * vector)[-1])  # one after the other, as fastText adds
        if norm > 0:
            total += vector * np.float32(1.0 / float(norm))
            count += 1
    return total * np.float32(1.0 / max(count, 1))


def _supervised(model: FastText, sentence: bytes) -> np.ndarray:
    tokens = [word for word in re.split(rb"[ \t\v\f\r\0]+", sentence) if word]
    tokens = [*(tokens[: tokens.index(EOS)] if EOS in tokens else tokens), EOS]
    ids, words = model.dictionary.ids(tokens), model.dictionary.word_count
    kept = [own < words if own >= 0 else not token.startswith(_LABEL) for token, own in zip(tokens, ids)]
    tokens = list(compress(tokens, kept))
    values = np.concatenate([model.rows(tokens).values, _word_ngrams(model, hash_strings(tokens))])
    bag = Ragged(np.array([0, len(values)]), values)
    return sum_rows(model.matrix.take, bag, model.dim)[0] * np.float32(1.0 / max(len(values), 1))


def _word_ngrams(model: FastText, hashes: np.ndarray) -> np.ndarray:
    """Rows of the word n-grams, in fastText's order; hashes are sign-extended to 64 bits."""
    extended, buckets = hashes.view(np.int32).tolist(), []
    for first, mixed in enumerate(extended):
        for other in extended[first + 1 : first + model.header.word_ngrams]:
            mixed = (mixed * _MIX + other) % 2**64
            buckets.append(mixed % model.header.bucket)
    rows = model.dictionary.bucket_rows(np.array(buckets, dtype=np.int64))
    return rows[rows >= 0]
