"""A compact store: what a vocabulary needs of a fastText model, memory-mapped, in float32 or float16.

    store.json                          n-gram lengths, buckets
    words.{offsets,values}.npy          words as bytes, in the order of the rows
    vectors.npy      (words, dim)       each word's accumulated vector: one row to read instead of some twenty
    bucket_ids.npy   (used,)            buckets kept, rising
    ngrams.npy       (used, dim)        their rows, for other words

A word among the words answers as the model does (in float32 to the bit); another is the mean of its n-grams'
rows, of which those that were not kept count as zero.
"""

import itertools
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from storage.arrays import Ragged, open_array
from tasks.fasttext.dictionary import keep
from tasks.fasttext.matrices import mean_rows, sum_rows
from tasks.fasttext.model import FastText
from tasks.fasttext.ngrams import bucket_ids, encode

STORE = "store.json"
Precision = Literal["float32", "float16"]
_BLOCK = 16_384


class CompactStore:
    """A store that was built: its folder, lengths of n-grams and hash buckets."""

    def __init__(self, folder: Path, shortest: int, longest: int, buckets: int) -> None:
        self.folder, self.shortest, self.longest, self.buckets = folder, shortest, longest, buckets
        self.word_rows, self.ngram_rows = open_array(folder, "vectors"), open_array(folder, "ngrams")
        self.bucket_ids, self.dim = open_array(folder, "bucket_ids"), self.word_rows.shape[1]

    @staticmethod
    def open(folder: Path | str) -> "CompactStore":
        """Maps a store."""
        return CompactStore(Path(folder), **json.loads(Path(folder, STORE).read_text(encoding="utf-8")))

    @cached_property
    def words(self) -> list[bytes]:
        """Words with a vector of their own."""
        packed = Ragged.open(self.folder, "words")
        values, offsets = packed.values.tobytes(), packed.offsets.tolist()
        return [values[start:end] for start, end in itertools.pairwise(offsets)]

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {word: place for place, word in enumerate(self.words)}

    def vectors(self, words: Sequence[str | bytes]) -> np.ndarray:
        """Vectors of words: float32 (words, dim); zero where nothing is known."""
        places = find_words(self._places, words)
        own = places >= 0
        rows, counts = self._ngram_rows([word for word, has in zip(words, own, strict=True) if not has])
        result = np.zeros((len(words), self.dim), dtype=np.float32)
        result[own] = self.word_rows[places[own]]
        sums = sum_rows(lambda ids: self.ngram_rows[ids].astype(np.float32), rows, self.dim)
        result[~own] = mean_rows(sums, counts)
        return result

    def _ngram_rows(self, words: Sequence[str | bytes]) -> tuple[Ragged, np.ndarray]:
        """Places of each word's n-grams that were kept, and how many it has in all: int64 (words,)."""
        ids = bucket_ids(words, self.shortest, self.longest, max(self.buckets, 1))
        places = np.searchsorted(self.bucket_ids, ids.values)
        kept = np.append(self.bucket_ids, -1)[places] == ids.values
        return keep(Ragged(ids.offsets, places), kept), ids.lengths


def find_words(places: dict[bytes, int], words: Sequence[str | bytes]) -> np.ndarray:
    """Place of each word, -1 for unknown ones: int64 (words,)."""
    return np.array([places.get(encode(word), -1) for word in words], dtype=np.int64)


def build_store(
    model: FastText,
    folder: Path | str,
    words: Sequence[str | bytes] | None = None,
    precision: Precision = "float16",
    *,
    all_ngrams: bool = False,
) -> CompactStore:
    """Extracts a store into a new folder, in one pass in the order in which rows lie in the file.

    ``words`` is the vocabulary, None the model's own; words that the model does not know keep what their
    n-grams give. ``all_ngrams`` keeps every bucket, for words of any kind; else those of the vocabulary.
    """
    dictionary, header = model.dictionary, model.header
    if dictionary.pruned is not None:
        raise ValueError("the model's n-grams were pruned: it is compact already, without a row a bucket")
    place = Path(folder)
    place.mkdir(parents=True)
    asked = [encode(word) for word in (dictionary.words() if words is None else dict.fromkeys(words))]
    chosen = [word for word, own in zip(asked, model.known(asked), strict=True) if own]
    used = np.arange(header.bucket)
    if not all_ngrams:
        used = np.unique(bucket_ids(chosen, header.minn, header.maxn, max(header.bucket, 1)).values)
    rows = used + dictionary.word_count
    for name, count, take in (
        ("vectors", len(chosen), lambda block: model.vectors(chosen[block])),
        ("ngrams", len(used), lambda block: model.matrix.take(rows[block])),
    ):
        shape = (count, model.dim)
        if not count:  # nothing cannot be mapped
            np.save(place / f"{name}.npy", np.zeros(shape, dtype=precision))
            continue
        mapped = np.lib.format.open_memmap(place / f"{name}.npy", mode="w+", dtype=precision, shape=shape)
        for start in range(0, count, _BLOCK):
            mapped[start : start + _BLOCK] = take(slice(start, start + _BLOCK))
        mapped.flush()
    np.save(place / "bucket_ids.npy", used)
    letters = [np.frombuffer(word, dtype=np.uint8) for word in chosen]
    Ragged.from_rows(letters, dtype=np.uint8).save(place, "words")
    described = {"shortest": header.minn, "longest": header.maxn, "buckets": header.bucket}
    (place / STORE).write_text(json.dumps(described), encoding="utf-8")
    return CompactStore.open(place)
