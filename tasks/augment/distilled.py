"""What the trained words know, put into n-grams: each word's target is to be the mean of its n-grams' rows.

A word never seen is then the mean of its n-grams' rows, plus the mean of the trained words (tasks/augment/targets.py), at the
length of the rarest of them. The rows are found by ridge regression (tasks/augment/ridge.py).

References:
    Zhao, Mudgal, Liang. Generalizing Word Embeddings using Bag of Subwords. EMNLP 2018. https://arxiv.org/abs/1809.04259
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from storage.arrays import Ragged
from tasks.augment.ngrams import bucket_ids
from tasks.augment.ridge import solve_ridge
from tasks.augment.targets import centre
from tasks.augment.unseen import NgramRows
from tasks.form import FORM


@dataclass(frozen=True, kw_only=True)
class Distilled:
    """n-gram rows from trained word rows."""

    __pydantic_config__ = FORM
    name: Literal["distilled"] = "distilled"
    shortest: int = field(default=3, metadata={"description": "Shortest n-gram; the edges of the word count as characters", "ge": 1, "le": 10})
    longest: int = field(default=6, metadata={"description": "Longest n-gram, counted alike", "ge": 1, "le": 10})
    buckets: int = field(default=2_000_000, metadata={"description": "Hash buckets; only those in use take memory", "ge": 1, "le": 2**31 - 1})
    alpha: float = field(
        default=0.1, metadata={"description": "Ridge regularization: higher trusts single n-grams less", "gt": 0}
    )
    max_iter: int = field(default=30, metadata={"description": "Most iterations of conjugate gradients", "ge": 1})
    tol: float = field(
        default=1e-2, metadata={"description": "Relative residual at which the iterations end", "gt": 0}
    )

    def fit(self, words: Sequence[str], rows: np.ndarray, document_frequency: np.ndarray) -> NgramRows:  # noqa: D102  (NgramSource.fit)
        if not len(words):
            raise ValueError("no trained word to distil n-grams from; the vocabulary holds none")
        ids = bucket_ids(words, self.shortest, self.longest, self.buckets)
        used, columns = np.unique(ids.values, return_inverse=True)
        centred, mean, norm = centre(rows, document_frequency)
        bags = Ragged(ids.offsets, columns)
        solved = solve_ridge(
            bags, len(used), centred, alpha=self.alpha, max_iter=self.max_iter, tol=self.tol
        )
        return NgramRows(shortest=self.shortest, longest=self.longest, buckets=self.buckets, bucket_ids=used, rows=solved, mean=mean, norm=norm)
