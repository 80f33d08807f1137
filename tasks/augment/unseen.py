"""Vectors for words never seen, from the rows of their n-grams. NumPy alone: served models carry this file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.augment.ngrams import bucket_ids


@dataclass(frozen=True, kw_only=True)
class NgramRows:
    """Rows of the n-gram buckets in use.

    Attributes:
        shortest: Shortest n-gram of ``<word>``.
        longest: Longest n-gram.
        buckets: Number of hash buckets.
        bucket_ids: int64 (used,), rising: which buckets have a row.
        rows: float32 (used, dim).
        mean: float32 (dim,): added back to every word.
        norm: Length that an unseen word's vector gets.
    """

    shortest: int
    longest: int
    buckets: int
    bucket_ids: np.ndarray
    rows: np.ndarray
    mean: np.ndarray
    norm: float

    @staticmethod
    def none(dim: int) -> NgramRows:
        """No n-gram has a row: of a tokenizer without words."""
        zeros = np.zeros((0, dim), dtype=np.float32)
        return NgramRows(shortest=3, longest=6, buckets=1, bucket_ids=np.zeros(0, dtype=np.int64), rows=zeros, mean=np.zeros(dim, dtype=np.float32), norm=1.0)

    def vectors(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Vectors of words.

        Args:
            words: Case-folded.

        Returns:
            float32 (words, dim), and bool (words,): whether any n-gram of the word has a row (its vector is zero if not).
        """
        if not len(self.bucket_ids):  # no trained word was long enough for an n-gram
            return np.zeros((len(words), self.rows.shape[1]), dtype=np.float32), np.zeros(len(words), dtype=bool)
        ids = bucket_ids(words, self.shortest, self.longest, self.buckets)
        places = np.searchsorted(self.bucket_ids, ids.values).clip(max=len(self.bucket_ids) - 1)
        known = self.bucket_ids[places] == ids.values
        owner = ids.owners
        sums = np.zeros((len(words), self.rows.shape[1]), dtype=np.float32)
        np.add.at(sums, owner[known], self.rows[places[known]])
        found = np.bincount(owner[known], minlength=len(words)) > 0
        vectors = sums / np.maximum(ids.lengths, 1)[:, None].astype(np.float32) + self.mean
        vectors *= self.norm / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return np.where(found[:, None], vectors, 0).astype(np.float32), found
