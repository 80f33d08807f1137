"""Fits n-gram rows to the trained rows of words: the mean of a word's n-gram rows approximates its row.

The vector of an unseen word is the mean of its n-gram rows plus the mean of the trained rows, scaled to the
median norm of the rows of rare words. The n-gram rows are computed by ridge regression (ridge.py).

References:
    Zhao, Mudgal, Liang. Generalizing Word Embeddings using Bag of Subwords. EMNLP 2018.
    https://arxiv.org/abs/1809.04259
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from storage.arrays import Ragged
from tasks.augment.ridge import compute_targets, solve_ridge
from tasks.encoder.unseen_words import NgramRows
from tasks.fasttext.ngrams import bucket_ids
from tasks.form import configurable, setting


@configurable
class Distilled:
    """Strategy: fits n-gram rows so that their mean approximates the trained rows of words."""

    name: Literal["distilled"] = "distilled"
    shortest: int = setting(
        3, "Length of the shortest n-grams; the two edges of a word count as characters", ge=1, le=10
    )
    longest: int = setting(
        6, "Length of the longest n-grams; the two edges of a word count as characters", ge=1, le=10
    )
    buckets: int = setting(
        2_000_000, "Number of hash buckets of n-grams; only used buckets take memory", ge=1, le=2**31 - 1
    )
    alpha: float = setting(
        0.1, "Regularization of the ridge regression; a higher value makes rows of rare n-grams smaller", gt=0
    )
    max_iter: int = setting(30, "Maximum number of iterations of conjugate gradients", ge=1)
    tol: float = setting(1e-2, "Relative residual at which the iterations end", gt=0)

    def __post_init__(self) -> None:
        if self.shortest > self.longest:
            problem = f"shortest is {self.shortest}, but must be at most longest ({self.longest})"
            raise ValueError(f"{problem}; lower shortest or raise longest")

    def fit(self, words: Sequence[str], rows: np.ndarray, document_frequency: np.ndarray) -> NgramRows:
        """Fits n-gram rows to the trained rows of words.

        Args:
            words: Case-folded words that have a trained row.
            rows: Trained row of each word, float32 (words, dim).
            document_frequency: Number of training titles that contain each word, int64 (words,).
        """
        if not len(words):
            raise ValueError(
                "there are no trained words, to which n-gram rows can be fitted; read more feeds"
            )
        ids = bucket_ids(words, self.shortest, self.longest, self.buckets)
        used_buckets, columns = np.unique(ids.values, return_inverse=True)
        centred_rows, mean, norm = compute_targets(rows, document_frequency)
        ngram_rows = solve_ridge(
            Ragged(ids.offsets, columns), len(used_buckets), centred_rows,
            alpha=self.alpha, max_iter=self.max_iter, tol=self.tol,
        )  # fmt: skip
        return NgramRows(
            shortest=self.shortest, longest=self.longest, buckets=self.buckets,
            bucket_ids=used_buckets, rows=ngram_rows, mean=mean, norm=norm,
        )  # fmt: skip
