"""Opens fastText models as memory-mapped files, and computes word vectors and sentence vectors.

Opening a model reads its dictionary; computing a vector reads only the rows of its word and n-grams. Vectors
equal those of the package fasttext bit for bit, because sums are computed in the same order in float32.
"""

import mmap
import re
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from storage.arrays import Ragged
from tasks.fasttext.dictionary import EOS, Dictionary, read_dictionary
from tasks.fasttext.layout import Cursor, Header, read_header
from tasks.fasttext.matrices import Matrix, mean_rows, read_matrix
from tasks.fasttext.ngrams import (
    bucket_ids,
    bucket_ids_of_text,
    enclose_pieces,
    enclose_words,
    encode,
    extract_ngrams,
    hash_strings,
)

_CHUNK_WORDS = 65_536  # words per batch; their n-grams take about 100 MB
_LABEL = b"__label__"  # default prefix of labels in fastText; files do not contain the prefix
_HASH_FACTOR = 116049371  # factor in the hash of word n-grams


class Ngram(NamedTuple):
    """Character n-gram of a word (or the word itself) with its row of the input matrix."""

    text: str
    row: int  # index of the row in the input matrix
    vector: np.ndarray  # the row, float32 (dim,)


class FastText(NamedTuple):
    """Memory-mapped fastText model: header, dictionary, input matrix and output matrix.

    The input matrix has a row for each word, followed by a row for each n-gram bucket.
    """

    header: Header
    dictionary: Dictionary
    matrix: Matrix
    output: Matrix

    @staticmethod
    def open(path: Path | str) -> "FastText":
        """Opens a .bin or .ftz file of fastText (version 12, 11 or older) as a memory map.

        Raises:
            FastTextError: The file is not a fastText model or is damaged.
        """
        cursor = Cursor(Path(path))
        header = read_header(cursor)
        dictionary = read_dictionary(cursor, with_pruning=header.version > 0, buckets=header.bucket)
        quantised = header.version > 0 and cursor.read_flag("the input matrix is quantised")
        if dictionary.kept_buckets is not None and not quantised:
            reason = "rows and buckets do not match (fastText issue 332)"
            cursor.fail(f"n-grams are pruned, but the matrix is dense: {reason}", 1)
        ngram_rows = header.bucket if dictionary.kept_buckets is None else len(dictionary.kept_buckets[0])
        begin, words, dim = cursor.offset, dictionary.word_count, header.dim
        matrix = read_matrix(cursor, "input", rows=words + ngram_rows, dim=dim, quantised=quantised)
        if not quantised and hasattr(mmap, "MADV_RANDOM"):  # the system would read 128 KB around every row
            page = begin - begin % mmap.PAGESIZE
            cursor.data.madvise(mmap.MADV_RANDOM, page, cursor.offset - page)
        quantised &= header.version > 0 and cursor.read_flag("the output matrix is quantised")
        rows = len(dictionary) - words if header.supervised else words
        output = read_matrix(cursor, "output", rows=rows, dim=dim, quantised=quantised)
        if trailing_bytes := cursor.size - cursor.offset:
            reason = "an earlier size is wrong, or the file is damaged"
            cursor.fail(f"the model ends here, but {trailing_bytes} bytes follow: {reason}")
        return FastText(header, dictionary, matrix, output)

    @property
    def dim(self) -> int:
        """Number of dimensions of a vector."""
        return self.header.dim

    @property
    def words(self) -> list[bytes]:
        """All words of the dictionary, without labels."""
        return self.dictionary.words()

    def vectors(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Computes the vectors of words, float32 (words, dim).

        The vector is zero if neither the word nor any of its n-grams has a row in the input matrix.
        """
        vectors = np.empty((len(words), self.dim), dtype=np.float32)
        for start in range(0, len(words), _CHUNK_WORDS):
            ids = self.rows(words[start : start + _CHUNK_WORDS])
            vectors[start : start + _CHUNK_WORDS] = mean_rows(self.matrix.take, ids, self.dim)
        return vectors

    def rows(self, words: Sequence[str | bytes]) -> Ragged:
        """Returns, for each word, the indices of the rows of the input matrix whose mean is the vector.

        If the word is in the dictionary, its row comes first. The rows of its n-grams follow.
        """
        return Ragged.concatenate([self._rows(text, begins) for text, begins in enclose_pieces(words)])

    def _rows(self, text: bytes, begins: np.ndarray) -> Ragged:
        word_rows = self._word_rows(text, begins)
        has_row, header = word_rows >= 0, self.header
        buckets = bucket_ids_of_text(text, begins, header.minn, header.maxn, max(header.bucket, 1), has_row)
        rows = Ragged(buckets.offsets, self.dictionary.bucket_rows(buckets.values))
        for word in self._without_ngrams(text, begins):
            rows[word][:] = -1
        rows.values[buckets.offsets[:-1][has_row]] = word_rows[has_row]
        return rows if rows.values.min(initial=0) >= 0 else rows.where(rows.values >= 0)

    def _without_ngrams(self, text: bytes, begins: np.ndarray) -> list[int]:
        """Returns the indices of the words that are the end-of-sentence token </s>, which gets no n-grams.

        In files without a version, </s> has n-grams, so the result is empty.
        """
        sentence_end = b"<" + EOS + b">"
        if self.header.version == 0 or sentence_end not in text:
            return []
        same_length = np.flatnonzero(np.diff(begins) == len(sentence_end)).tolist()
        return [word for word in same_length if text.startswith(sentence_end, begins[word])]

    def _word_rows(self, text: bytes, begins: np.ndarray) -> np.ndarray:
        """Returns the row in the input matrix of each word, int64 (words,); -1 for unknown words and labels.

        The fasttext package differs: for a label, it returns the row of another token.
        """
        numbers = self.dictionary.find(text, begins)
        return np.where(numbers < self.dictionary.word_count, numbers, -1)

    def ngrams(self, words: Sequence[str | bytes]) -> list[list[Ngram]]:
        """Returns the n-grams of each word that have a row, after the word itself if it has a row."""
        header = self.header
        buckets = bucket_ids(words, header.minn, header.maxn, max(header.bucket, 1))
        joined_words, begins = enclose_words(words)
        without_ngrams, ngrams_by_word = self._without_ngrams(joined_words, begins), []
        word_rows = self._word_rows(joined_words, begins).tolist()
        for number, (word, word_row) in enumerate(zip(words, word_rows, strict=True)):
            texts = [encode(word), *extract_ngrams(word, header.minn, header.maxn)]
            rows = [word_row, *self.dictionary.bucket_rows(buckets[number])]
            pairs = list(zip(texts, rows, strict=True))[: 1 if number in without_ngrams else None]
            pairs = [(text.decode("utf-8", "backslashreplace"), int(row)) for text, row in pairs if row >= 0]
            vectors = self.matrix.take(np.array([row for _, row in pairs], dtype=np.int64))
            ngrams_by_word.append(
                [Ngram(text, row, vector) for (text, row), vector in zip(pairs, vectors, strict=True)]
            )
        return ngrams_by_word


def sentence_vectors(model: FastText, sentences: Sequence[str | bytes]) -> np.ndarray:
    """Computes sentence vectors as fastText does: float32 (sentences, dim).

    The vector of a sentence is the mean of the unit vectors of its words. In a supervised model, it is the
    mean of the input rows of its words, their n-grams, its word n-grams and the end of the sentence.

    Raises:
        ValueError: A sentence contains a line feed.
    """
    vectors = np.zeros((len(sentences), model.dim), dtype=np.float32)
    for number, sentence in enumerate(map(encode, sentences)):
        if b"\n" in sentence:
            byte = sentence.index(10)
            raise ValueError(
                f"sentence {number} contains a line feed at byte {byte}; give sentences without line feeds"
            )
        compute = _supervised_vector if model.header.supervised else _unsupervised_vector
        vectors[number] = compute(model, sentence)
    return vectors


def _unsupervised_vector(model: FastText, sentence: bytes) -> np.ndarray:
    unit_vector_sum, count = np.zeros(model.dim, dtype=np.float32), 0
    for vector in model.vectors([word for word in re.split(rb"[ \t\v\f\r]+", sentence) if word]):
        norm = np.sqrt(np.add.accumulate(vector * vector)[-1])  # sequential summation as in fastText
        if norm > 0:
            unit_vector_sum += vector * np.float32(1.0 / float(norm))
            count += 1
    return unit_vector_sum * np.float32(1.0 / max(count, 1))


def _supervised_vector(model: FastText, sentence: bytes) -> np.ndarray:
    tokens = [word for word in re.split(rb"[ \t\v\f\r\0]+", sentence) if word]
    tokens = [*(tokens[: tokens.index(EOS)] if EOS in tokens else tokens), EOS]
    ids, words = model.dictionary.ids(tokens), model.dictionary.word_count
    is_used = [
        row < words if row >= 0 else not token.startswith(_LABEL)
        for token, row in zip(tokens, ids, strict=True)
    ]
    tokens = list(compress(tokens, is_used))
    values = np.concatenate([model.rows(tokens).values, _word_ngram_rows(model, hash_strings(tokens))])
    ids = Ragged(np.array([0, len(values)]), values)
    return mean_rows(model.matrix.take, ids, model.dim)[0]


def _word_ngram_rows(model: FastText, hashes: np.ndarray) -> np.ndarray:
    """Returns the rows in the input matrix of the word n-grams of a sentence, in the order of fastText.

    ``hashes`` are the hashes of the words, uint32. fastText sign-extends them to 64 bits.
    """
    signed_hashes, buckets = hashes.view(np.int32).tolist(), []
    for first, combined_hash in enumerate(signed_hashes):
        for next_hash in signed_hashes[first + 1 : first + model.header.word_ngrams]:
            combined_hash = (combined_hash * _HASH_FACTOR + next_hash) % 2**64
            buckets.append(combined_hash % model.header.bucket)
    rows = model.dictionary.bucket_rows(np.array(buckets, dtype=np.int64))
    return rows[rows >= 0]
