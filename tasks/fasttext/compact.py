"""Copies the rows of a fastText model that a vocabulary needs into a small folder of memory-mapped arrays.

    store.json                          n-gram lengths, number of buckets
    words.{offsets,values}.npy          words as bytes, in row order
    vectors.npy      (words, dim)       vector of each word, which replaces about twenty rows of n-grams
    bucket_ids.npy   (used,)            sorted n-gram buckets with a row
    ngrams.npy       (used, dim)        rows of these buckets, for words that are not stored

Arrays are float32 or float16. A stored word has the same vector as in the fastText model, in float32 bit for
bit. Any other word has the mean of the rows of its n-grams, where rows that are not stored count as zero.
"""

import itertools
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from storage.arrays import Ragged, open_array
from tasks.fasttext.matrices import mean_rows, sum_rows
from tasks.fasttext.model import FastText
from tasks.fasttext.ngrams import bucket_ids, encode

STORE = "store.json"
Precision = Literal["float32", "float16"]
_BLOCK = 16_384


class CompactStore:
    """Word vectors that ``build_store`` copied from a fastText model, as memory-mapped arrays.

    Args:
        folder: Folder of the store.
        shortest: Minimum number of characters of n-grams.
        longest: Maximum number of characters of n-grams.
        buckets: Number of hash buckets of n-grams.
    """

    def __init__(self, folder: Path, shortest: int, longest: int, buckets: int) -> None:
        self.folder, self.shortest, self.longest, self.buckets = folder, shortest, longest, buckets
        self.word_rows, self.ngram_rows = open_array(folder, "vectors"), open_array(folder, "ngrams")
        self.bucket_ids, self.dim = open_array(folder, "bucket_ids"), self.word_rows.shape[1]

    @staticmethod
    def open(folder: Path | str) -> "CompactStore":
        """Opens a folder that ``build_store`` has written."""
        return CompactStore(Path(folder), **json.loads(Path(folder, STORE).read_text(encoding="utf-8")))

    @cached_property
    def words(self) -> list[bytes]:
        """Returns the words that have a stored vector, as bytes in UTF-8."""
        word_bytes = Ragged.open(self.folder, "words")
        values, offsets = word_bytes.values.tobytes(), word_bytes.offsets.tolist()
        return [values[start:end] for start, end in itertools.pairwise(offsets)]

    @cached_property
    def _rows_by_word(self) -> dict[bytes, int]:
        return {word: row for row, word in enumerate(self.words)}

    def vectors(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Returns the vectors of words: float32 (words, dim).

        The vector is zero for a word that is not stored and has no stored n-gram.
        """
        word_rows = find_words(self._rows_by_word, words)
        is_stored = word_rows >= 0
        other_words = [word for word, stored in zip(words, is_stored, strict=True) if not stored]
        rows, counts = self._ngram_rows(other_words)
        result = np.zeros((len(words), self.dim), dtype=np.float32)
        result[is_stored] = self.word_rows[word_rows[is_stored]]
        sums = sum_rows(lambda ids: self.ngram_rows[ids].astype(np.float32), rows, self.dim)
        result[~is_stored] = mean_rows(sums, counts)
        return result

    def _ngram_rows(self, words: Sequence[str | bytes]) -> tuple[Ragged, np.ndarray]:
        """Returns the rows of the stored n-grams of each word, and the number of all its n-grams."""
        ids = bucket_ids(words, self.shortest, self.longest, max(self.buckets, 1))
        positions = np.searchsorted(self.bucket_ids, ids.values)
        has_row = np.append(self.bucket_ids, -1)[positions] == ids.values
        return Ragged(ids.offsets, positions).where(has_row), ids.lengths


def find_words(rows_by_word: dict[bytes, int], words: Sequence[str | bytes]) -> np.ndarray:
    """Returns the row index of each word, int64 (words,), or -1 for unknown words."""
    return np.array([rows_by_word.get(encode(word), -1) for word in words], dtype=np.int64)


def build_store(
    model: FastText,
    folder: Path | str,
    words: Sequence[str | bytes] | None = None,
    precision: Precision = "float16",
    *,
    all_ngrams: bool = False,
) -> CompactStore:
    """Copies the vectors of words and the rows of n-grams from a fastText model into a new folder.

    Args:
        model: Model whose n-grams were not pruned.
        folder: The new folder.
        words: Words whose vectors are stored; None for all words of the model.
        precision: Type of the stored vectors.
        all_ngrams: Whether to store the rows of all n-grams, so that any other word has a vector, or only
            the rows of the n-grams of ``words``.

    Raises:
        ValueError: The n-grams of the model were pruned.
    """
    dictionary, header = model.dictionary, model.header
    if dictionary.pruned is not None:
        raise ValueError("the n-grams of the model were pruned, so it has no row for every bucket")
    target = Path(folder)
    target.mkdir(parents=True)
    requested_words = [
        encode(word) for word in (dictionary.words() if words is None else dict.fromkeys(words))
    ]
    chosen = list(itertools.compress(requested_words, model.has_vector(requested_words)))
    buckets = np.arange(header.bucket)
    if not all_ngrams:
        buckets = np.unique(bucket_ids(chosen, header.minn, header.maxn, max(header.bucket, 1)).values)
    rows = buckets + dictionary.word_count
    for name, count, take in (
        ("vectors", len(chosen), lambda block: model.vectors(chosen[block])),
        ("ngrams", len(buckets), lambda block: model.matrix.take(rows[block])),
    ):
        shape = (count, model.dim)
        if not count:  # an empty array cannot be mapped
            np.save(target / f"{name}.npy", np.zeros(shape, dtype=precision))
            continue
        output = np.lib.format.open_memmap(target / f"{name}.npy", mode="w+", dtype=precision, shape=shape)
        for start in range(0, count, _BLOCK):
            output[start : start + _BLOCK] = take(slice(start, start + _BLOCK))
        output.flush()
    np.save(target / "bucket_ids.npy", buckets)
    letters = [np.frombuffer(word, dtype=np.uint8) for word in chosen]
    Ragged.from_rows(letters, dtype=np.uint8).save(target, "words")
    settings = {"shortest": header.minn, "longest": header.maxn, "buckets": header.bucket}
    (target / STORE).write_text(json.dumps(settings), encoding="utf-8")
    return CompactStore.open(target)
