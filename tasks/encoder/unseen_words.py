"""What gives a vector to words that training never touched: rows of their n-grams, or rows of the trained
words that a character encoder puts nearest. tasks/augment fits them; a title encoder holds one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from storage.arrays import unit_rows
from storage.shapes import Float32, Int64
from tasks.fasttext.ngrams import bucket_ids
from tasks.neighbours.similarity import top_neighbours
from tasks.recurrent.encoder import CharacterEncoder

POWER = 4  # of a neighbour's cosine: its weight


class UnseenWords(Protocol):
    """Words to vectors in the space of the trained rows."""

    key: ClassVar[str]  # of its section in lexicon.json

    @property
    def size(self) -> int:
        """How many rows it holds."""
        ...

    def vectors(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Vectors of case-folded words, float32 (words, dim), and whether anything is known of each (else its
        vector is zero): bool (words,).
        """
        ...

    def describe(self) -> dict[str, Any]:
        """All but the arrays, as JSON has it."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays, by names that no other array of a title encoder has."""
        ...


@dataclass(frozen=True, kw_only=True)
class NgramRows:
    """Rows of the n-gram buckets in use: an unseen word is the mean of its n-grams' rows."""

    key: ClassVar[str] = "ngrams"
    shortest: int  # n-gram of <word>
    longest: int
    buckets: int
    bucket_ids: Int64[np.ndarray, " used"]  # buckets with a row, rising
    rows: Float32[np.ndarray, "used dim"]
    mean: Float32[np.ndarray, " dim"]  # added back to every word
    norm: float  # length of an unseen word's vector

    @staticmethod
    def none(dim: int) -> "NgramRows":
        """No n-gram has a row, as for a tokenizer without words."""
        ids, rows = np.zeros(0, dtype=np.int64), np.zeros((0, dim), np.float32)
        mean = np.zeros(dim, np.float32)
        return NgramRows(shortest=3, longest=6, buckets=1, bucket_ids=ids, rows=rows, mean=mean, norm=1.0)

    @property
    def size(self) -> int:
        """Buckets with a row."""
        return len(self.bucket_ids)

    def find(self, buckets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Row of each bucket, and whether it has one: int64 and bool, shaped as ``buckets``."""
        if not len(self.bucket_ids):
            return np.zeros_like(buckets), np.zeros(buckets.shape, dtype=bool)
        places = np.searchsorted(self.bucket_ids, buckets).clip(max=len(self.bucket_ids) - 1)
        return places, self.bucket_ids[places] == buckets

    def vectors(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """See UnseenWords; a word is known if any of its n-grams has a row."""
        ids = bucket_ids(words, self.shortest, self.longest, self.buckets)
        places, known = self.find(ids.values)
        owner = ids.owners[known]
        sums = np.zeros((len(words), len(self.mean)), dtype=np.float32)
        np.add.at(sums, owner, self.rows[places[known]])
        found = np.bincount(owner, minlength=len(words)) > 0
        means = sums / np.maximum(ids.lengths, 1)[:, None].astype(np.float32)
        return _placed(means + self.mean, self.norm, found), found

    def describe(self) -> dict[str, Any]:
        """See UnseenWords."""
        return {name: getattr(self, name) for name in ("shortest", "longest", "buckets", "norm")}

    def arrays(self) -> dict[str, np.ndarray]:
        """See UnseenWords."""
        return {"bucket_ids": self.bucket_ids, "bucket_rows": self.rows, "mean": self.mean}

    @staticmethod
    def restore(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "NgramRows":
        """What ``describe`` and ``arrays`` said."""
        ids, rows, mean = arrays["bucket_ids"], arrays["bucket_rows"], arrays["mean"]
        return NgramRows(bucket_ids=ids, rows=rows, mean=mean, **about)


@dataclass(frozen=True, kw_only=True, eq=False)
class NearestWords:
    """Trained words in the space of a character encoder: an unseen word is the mean of the rows of those
    nearest to it there, each by its cosine to the power of four.
    """

    key: ClassVar[str] = "stems"
    encoder: CharacterEncoder
    neighbours: int
    codes: Float32[np.ndarray, "words hidden"]  # the encoder's vectors of the trained words, at unit norm
    rows: Float32[np.ndarray, "words dim"]  # theirs, at unit norm less their mean
    mean: Float32[np.ndarray, " dim"]  # added back to every word
    norm: float  # length of an unseen word's vector

    @property
    def size(self) -> int:
        """Trained words."""
        return len(self.codes)

    def vectors(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """See UnseenWords; a word is known if any of its characters is."""
        ids = self.encoder.alphabet.ids(words)
        found = np.bincount(ids.owners, weights=ids.values > 0, minlength=len(words)) > 0
        codes = unit_rows(self.encoder.vectors(words))
        nearest, cosines = top_neighbours(codes, self.codes, min(self.neighbours, len(self.codes)))
        weights = np.where(nearest >= 0, cosines.clip(min=1e-6), 0) ** POWER  # (words, neighbours)
        means = np.einsum("wn,wnd->wd", weights, self.rows[nearest])
        means /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-30)
        return _placed(means + self.mean, self.norm, found), found

    def describe(self) -> dict[str, Any]:
        """See UnseenWords."""
        return {"neighbours": self.neighbours, "norm": self.norm, "encoder": self.encoder.describe()}

    def arrays(self) -> dict[str, np.ndarray]:
        """See UnseenWords."""
        own = {f"recurrent.{name}": array for name, array in self.encoder.arrays().items()}
        return {"word_codes": self.codes, "word_rows": self.rows, "mean": self.mean, **own}

    @staticmethod
    def restore(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "NearestWords":
        """What ``describe`` and ``arrays`` said."""
        prefix = "recurrent."
        own = {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}
        return NearestWords(
            encoder=CharacterEncoder.restore(about["encoder"], own),
            neighbours=about["neighbours"], codes=arrays["word_codes"], rows=arrays["word_rows"],
            mean=arrays["mean"], norm=about["norm"],
        )  # fmt: skip


SOURCES = {source.key: source for source in (NgramRows, NearestWords)}


def _placed(vectors: np.ndarray, norm: float, found: np.ndarray) -> np.ndarray:
    """Vectors at one length, float32; zero where nothing was found."""
    vectors = vectors * (norm / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))
    return np.where(found[:, None], vectors, 0).astype(np.float32)
