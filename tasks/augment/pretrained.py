"""What a pretrained fastText model knows of n-grams, brought into our space by a learnt linear map.

With X (words × fastText's dimensions) the means of the trained words' n-gram rows and T their own unit-norm rows less their
mean, the map is A = (XᵀX + λI)⁻¹ XᵀT, and a bucket's row is its row in the file times A: the mean of mapped rows is the
mapped mean, so that a word never seen is placed by n-grams that a far larger text has trained. X is made of n-grams alone
(not of the file's own rows for whole words), since that is all there is of a word never seen.

References:
    Mikolov, Le, Sutskever. Exploiting Similarities among Languages for Machine Translation. 2013, section 4 (the linear map).
    https://arxiv.org/abs/1309.4168. Bojanowski et al. 2017 for the n-gram rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from storage.arrays import Ragged
from tasks.augment.fasttext.matrices import sum_rows
from tasks.augment.fasttext.model import FastText
from tasks.augment.ngrams import bucket_ids
from tasks.augment.targets import centre
from tasks.augment.unseen import NgramRows
from tasks.form import FORM

_BLOCK = 16_384  # rows mapped at once: 20 MB of 300 dimensions


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """N-gram rows of a fastText model, mapped linearly to where the trained words are."""

    __pydantic_config__ = FORM
    name: Literal["pretrained"] = "pretrained"
    model: str = field(default="", metadata={"description": "fastText model file (.bin) with n-grams, not pruned", "content": True})
    vocabulary: int = field(default=20_000, metadata={"description": "Most frequent words of the file whose n-grams are kept beside those of the trained words", "ge": 0})
    map_ridge: float = field(default=0.01, metadata={"description": "λ of the map, in units of the mean variance of a dimension; higher trusts the file less", "gt": 0})

    def fit(self, words: Sequence[str], rows: np.ndarray, document_frequency: np.ndarray) -> NgramRows:  # noqa: D102  (NgramSource.fit)
        if not self.model:
            raise ValueError("augment.strategy.model names no fastText model file; --set augment.strategy.model=FILE.bin does")
        file = FastText.open(self.model)
        header = file.header
        if header.maxn == 0 or header.bucket == 0 or file.dictionary.pruned is not None:
            raise ValueError(
                f"{self.model} has no n-grams of its own for every bucket (maxn {header.maxn}, pruned: {file.dictionary.pruned is not None}); give a model trained with them"
            )
        ids = bucket_ids(words, header.minn, header.maxn, header.bucket)
        usable = ids.lengths > 0
        if usable.sum() < 2:
            raise ValueError(f"{int(usable.sum())} of {len(words)} trained words are long enough for an n-gram of {header.minn} characters; two or more are needed")
        offset = file.dictionary.word_count
        sources = sum_rows(file.matrix, Ragged(ids.offsets, ids.values + offset), file.dim) / np.maximum(ids.lengths, 1)[:, None]
        centred, mean, norm = centre(rows, document_frequency)
        matrix = _learn_map(sources[usable].astype(np.float64), centred[usable].astype(np.float64), self.map_ridge)
        frequent = [file.dictionary.word(number) for number in range(min(self.vocabulary, file.dictionary.word_count))]
        used = np.unique(np.concatenate([ids.values, bucket_ids(frequent, header.minn, header.maxn, header.bucket).values]))
        mapped = [file.matrix.take(used[start : start + _BLOCK] + offset) @ matrix for start in range(0, len(used), _BLOCK)]
        return NgramRows(shortest=header.minn, longest=header.maxn, buckets=header.bucket, bucket_ids=used, rows=np.concatenate(mapped), mean=mean, norm=norm)


def _learn_map(sources: np.ndarray, targets: np.ndarray, ridge: float) -> np.ndarray:
    """Least squares with a penalty: float32 (source dim, target dim)."""
    gram = sources.T @ sources
    penalty = ridge * max(float(np.trace(gram)) / len(gram), 1e-12)
    return np.linalg.solve(gram + penalty * np.eye(len(gram)), sources.T @ targets).astype(np.float32)
