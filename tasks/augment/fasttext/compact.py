"""A compact store: what a vocabulary needs of a fastText model, memory-mapped, in float32 or float16.

    store.json                          form, n-gram lengths, buckets
    words.{offsets,values}.npy          words as bytes, in the order of the rows
    vectors.npy      (words, dim)       each word's accumulated vector: one row to read instead of some twenty
    bucket_ids.npy   (used,)            buckets kept, rising
    ngrams.npy       (used, dim)        their rows, for words that are not among the words

The rows are extracted in one pass, in the order in which they lie in the file. A word among the words answers as the model
does (in float32 to the bit); another is the mean of its n-grams' rows, of which those that were not kept count as zero.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from storage.arrays import Ragged, open_array
from tasks.augment.fasttext.matrices import sum_rows
from tasks.augment.fasttext.model import FastText
from tasks.augment.ngrams import bucket_ids, encode

STORE = "store.json"
Precision = Literal["float32", "float16"]
_BLOCK = 16_384


class CompactStore:
    """A store that was built.

    Args:
        folder: Where it is.
        shortest: Shortest n-gram.
        longest: Longest n-gram.
        buckets: Hash buckets of the model it came from.
    """

    def __init__(self, folder: Path, shortest: int, longest: int, buckets: int) -> None:
        self.folder, self.shortest, self.longest, self.buckets = folder, shortest, longest, buckets
        self.word_rows, self.ngram_rows = open_array(folder, "vectors"), open_array(folder, "ngrams")
        self.bucket_ids = open_array(folder, "bucket_ids")

    @staticmethod
    def open(folder: Path | str) -> CompactStore:
        """Maps a store.

        Raises:
            FileNotFoundError: There is none.
        """
        return CompactStore(Path(folder), **json.loads((Path(folder) / STORE).read_text()))

    @cached_property
    def words(self) -> list[bytes]:
        """Words with a vector of their own."""
        packed = Ragged.open(self.folder, "words")
        values, offsets = packed.values.tobytes(), packed.offsets.tolist()
        return [values[start:end] for start, end in itertools.pairwise(offsets)]

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {word: place for place, word in enumerate(self.words)}

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return self.word_rows.shape[1]

    def known(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Whether each word has a vector or an n-gram with a row: bool (words,)."""
        own = self._find(words) >= 0
        own[~own] = self._ngram_rows([word for word, has in zip(words, own, strict=True) if not has])[0].lengths > 0
        return own

    def vectors(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Vectors of words: float32 (words, dim); zero where nothing is known."""
        result = np.zeros((len(words), self.dim), dtype=np.float32)
        places = self._find(words)
        own = places >= 0
        result[own] = self.word_rows[places[own]]
        rows, counts = self._ngram_rows([word for word, has in zip(words, own, strict=True) if not has])
        result[~own] = sum_rows(self, rows, self.dim) * (1.0 / np.maximum(counts, 1)).astype(np.float32)[:, None]
        return result

    def take(self, ids: np.ndarray) -> np.ndarray:
        """Rows of n-grams by their place in the store: float32 (ids, dim)."""
        return self.ngram_rows[ids].astype(np.float32)

    def _find(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Place of each word among the words, -1 for none: int64 (words,)."""
        return np.fromiter((self._places.get(encode(word), -1) for word in words), dtype=np.int64, count=len(words))

    def _ngram_rows(self, words: Sequence[str | bytes]) -> tuple[Ragged, np.ndarray]:
        """Places of the n-grams of each word that were kept, and how many n-grams it has in all: int64 (words,)."""
        ids = bucket_ids(words, self.shortest, self.longest, max(self.buckets, 1))
        if not len(self.bucket_ids):
            return Ragged(np.zeros_like(ids.offsets), ids.values[:0]), ids.lengths
        places = np.searchsorted(self.bucket_ids, ids.values).clip(max=len(self.bucket_ids) - 1)
        kept = self.bucket_ids[places] == ids.values
        return Ragged(np.append(0, np.cumsum(kept))[ids.offsets], places[kept]), ids.lengths


def build_store(model: FastText, folder: Path | str, words: Sequence[str | bytes] | None = None, precision: Precision = "float16", *, all_ngrams: bool = False) -> CompactStore:
    """Extracts a store.

    Args:
        model: Where from; dense or quantised, not pruned.
        folder: New folder.
        words: The vocabulary; None takes the model's own. Words that the model does not know keep what their n-grams give.
        precision: Of the rows.
        all_ngrams: Keep every bucket, for words of any kind; else those of the vocabulary's n-grams.

    Raises:
        FileExistsError: The folder is there already.
        ValueError: The model's n-grams were pruned.
    """
    if model.dictionary.pruned is not None:
        raise ValueError("the model's n-grams were pruned: it is compact already, and its buckets are no rows that could be taken out")
    place = Path(folder)
    place.mkdir(parents=True)
    chosen = [encode(word) for word in (model.dictionary.words() if words is None else dict.fromkeys(words))]
    known = model.known(chosen)
    chosen = [word for word, own in zip(chosen, known, strict=True) if own]
    header = model.header
    used = np.arange(header.bucket) if all_ngrams else np.unique(bucket_ids(chosen, header.minn, header.maxn, max(header.bucket, 1)).values)
    _write_rows(place / "vectors.npy", len(chosen), model.dim, precision, lambda start, end: model.vectors(chosen[start:end]))
    offset = model.dictionary.word_count
    _write_rows(place / "ngrams.npy", len(used), model.dim, precision, lambda start, end: model.matrix.take(used[start:end] + offset))
    np.save(place / "bucket_ids.npy", used)
    Ragged.from_rows([np.frombuffer(word, dtype=np.uint8) for word in chosen], dtype=np.uint8).save(place, "words")
    (place / STORE).write_text(json.dumps({"shortest": header.minn, "longest": header.maxn, "buckets": header.bucket}))
    return CompactStore.open(place)


def _write_rows(path: Path, rows: int, dim: int, precision: Precision, take: Callable[[int, int], np.ndarray]) -> None:
    """Writes rows block by block: ``take(start, end)`` gives them."""
    if not rows:  # nothing cannot be mapped
        np.save(path, np.zeros((0, dim), dtype=precision))
        return
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=precision, shape=(rows, dim))
    for start in range(0, rows, _BLOCK):
        mapped[start : start + _BLOCK] = take(start, min(start + _BLOCK, rows))
    mapped.flush()
