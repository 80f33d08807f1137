"""Computes vectors of words without a trained row (unseen words), by n-grams or by similar trained words.

Each method is called a source. tasks/augment fits a source, which becomes a part of the title encoder.
Trained words are the words with a trained row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from storage.arrays import unit_rows
from storage.shapes import Float32, Int64
from tasks.fasttext.ngrams import bucket_ids
from tasks.neighbours.similarity import top_neighbours

if TYPE_CHECKING:
    from tasks.recurrent.encoder import CharacterEncoder

COSINE_POWER = 4  # exponent of the cosine in the weight of a neighbour


class UnseenWords(Protocol):
    """Interface of sources that map unseen words to vectors in the space of the trained rows."""

    key: ClassVar[str]  # key in lexicon.json

    @property
    def size(self) -> int:
        """Number of rows that the source contains."""
        ...

    def vectors(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Computes vectors of case-folded words.

        Returns:
            The vector of each word, float32 (words, dim), which may be zero, and whether the source has a
            vector for the word, bool (words,).
        """
        ...

    def describe(self) -> dict[str, Any]:
        """Returns the settings as values that can be stored as JSON, without the arrays."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays by name. Names are unique in a title encoder."""
        ...


@dataclass(frozen=True, kw_only=True)
class NgramRows:
    """Source with a row per hashed n-gram. The vector of an unseen word is the mean of its n-gram rows."""

    key: ClassVar[str] = "ngrams"
    shortest: int  # shortest n-gram of <word>, in characters
    longest: int  # longest n-gram, in characters
    buckets: int  # number of hash buckets
    bucket_ids: Int64[np.ndarray, " used"]  # sorted ids of the hash buckets that have an embedding row
    rows: Float32[np.ndarray, "used dim"]  # embedding row of each bucket in ``bucket_ids``
    mean: Float32[np.ndarray, " dim"]  # added to the vector of every word
    norm: float  # norm of the vector of an unseen word

    @staticmethod
    def empty(dim: int) -> "NgramRows":
        """Creates a source without rows, which gives no word a vector."""
        ids, rows = np.zeros(0, dtype=np.int64), np.zeros((0, dim), np.float32)
        mean = np.zeros(dim, np.float32)
        return NgramRows(shortest=3, longest=6, buckets=1, bucket_ids=ids, rows=rows, mean=mean, norm=1.0)

    @property
    def size(self) -> int:
        """Number of hash buckets that have an embedding row."""
        return len(self.bucket_ids)

    def find(self, buckets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the row number of each bucket, int64, and whether the bucket has a row, bool."""
        if not len(self.bucket_ids):
            return np.zeros_like(buckets), np.zeros(buckets.shape, dtype=bool)
        positions = np.searchsorted(self.bucket_ids, buckets).clip(max=len(self.bucket_ids) - 1)
        return positions, self.bucket_ids[positions] == buckets

    def vectors(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Computes vectors of unseen words. A word has a vector if one of its n-grams has a row."""
        ids = bucket_ids(words, self.shortest, self.longest, self.buckets)
        positions, has_row = self.find(ids.values)
        word_ids = ids.row_ids[has_row]
        sums = np.zeros((len(words), len(self.mean)), dtype=np.float32)
        np.add.at(sums, word_ids, self.rows[positions[has_row]])
        has_vector = np.bincount(word_ids, minlength=len(words)) > 0
        means = sums / np.maximum(ids.lengths, 1)[:, None].astype(np.float32)
        return _scale_to_norm(means + self.mean, self.norm, has_vector), has_vector

    def describe(self) -> dict[str, Any]:
        """Returns the settings of the source as values that can be stored as JSON."""
        return {name: getattr(self, name) for name in ("shortest", "longest", "buckets", "norm")}

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays of the source by name."""
        return {"bucket_ids": self.bucket_ids, "bucket_rows": self.rows, "mean": self.mean}

    @staticmethod
    def restore(settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "NgramRows":
        """Creates a source from the results of ``describe`` and ``arrays``."""
        ids, rows, mean = arrays["bucket_ids"], arrays["bucket_rows"], arrays["mean"]
        return NgramRows(bucket_ids=ids, rows=rows, mean=mean, **settings)


@dataclass(frozen=True, kw_only=True, eq=False)
class NearestWords:
    """Source that uses the trained words nearest to an unseen word, in the space of a character encoder.

    The vector of an unseen word is the mean of the rows of its nearest trained words, weighted by the fourth
    power of the cosine to the unseen word.
    """

    key: ClassVar[str] = "stems"
    encoder: "CharacterEncoder"
    neighbours: int  # number of nearest words
    word_vectors: Float32[np.ndarray, "words hidden"]  # unit vectors of trained words, from ``encoder``
    rows: Float32[np.ndarray, "words dim"]  # unit-norm rows of trained words, minus the mean of all
    mean: Float32[np.ndarray, " dim"]  # added to the vector of every word
    norm: float  # norm of vectors of unseen words

    @property
    def size(self) -> int:
        """Number of trained words."""
        return len(self.word_vectors)

    def vectors(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Computes vectors of unseen words, except words without a character of the encoder's alphabet."""
        ids = self.encoder.alphabet.ids(words)
        has_vector = np.bincount(ids.row_ids, weights=ids.values > 0, minlength=len(words)) > 0
        word_vectors = unit_rows(self.encoder.vectors(words))
        neighbour_ids, cosines = top_neighbours(
            word_vectors, self.word_vectors, min(self.neighbours, len(self.word_vectors))
        )
        weights = np.where(neighbour_ids >= 0, cosines.clip(min=1e-6), 0) ** COSINE_POWER
        means = np.einsum("wn,wnd->wd", weights, self.rows[neighbour_ids])
        means /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-30)
        return _scale_to_norm(means + self.mean, self.norm, has_vector), has_vector

    def describe(self) -> dict[str, Any]:
        """Returns the settings of the source as values that can be stored as JSON."""
        return {"neighbours": self.neighbours, "norm": self.norm, "encoder": self.encoder.describe()}

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays of the source by name."""
        encoder_arrays = {f"recurrent.{name}": array for name, array in self.encoder.arrays().items()}
        return {"word_codes": self.word_vectors, "word_rows": self.rows, "mean": self.mean, **encoder_arrays}

    @staticmethod
    def restore(settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "NearestWords":
        """Creates a source from the results of ``describe`` and ``arrays``."""
        from tasks.recurrent.encoder import CharacterEncoder  # imports torch

        prefix = "recurrent."
        encoder_arrays = {
            name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)
        }
        return NearestWords(
            encoder=CharacterEncoder.restore(settings["encoder"], encoder_arrays),
            neighbours=settings["neighbours"], word_vectors=arrays["word_codes"], rows=arrays["word_rows"],
            mean=arrays["mean"], norm=settings["norm"],
        )  # fmt: skip


SOURCES = {source.key: source for source in (NgramRows, NearestWords)}


def _scale_to_norm(vectors: np.ndarray, norm: float, has_vector: np.ndarray) -> np.ndarray:
    """Scales vectors to ``norm``, float32, and sets the vectors of words without a vector to zero."""
    vectors = vectors * (norm / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))
    return np.where(has_vector[:, None], vectors, 0).astype(np.float32)
