"""n-gram rows of a pretrained fastText model, brought into our space by a learnt linear map.

With X (words × fastText's dimensions) the means of the trained words' n-gram rows and T their own unit-norm
rows less their mean, the map is A = (XᵀX + λI)⁻¹ XᵀT, and a bucket's row is its row in the file times A: the
mean of mapped rows is the mapped mean, so an unseen word is placed by n-grams that a far larger text has
trained. X is made of n-grams alone (not of the file's rows for whole words), since an unseen word has nothing
else.

References:
    Mikolov, Le, Sutskever. Exploiting Similarities among Languages for Machine Translation. 2013, section 4
    (the linear map). https://arxiv.org/abs/1309.4168. Bojanowski et al. 2017 for the n-gram rows.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from storage.arrays import Ragged
from tasks.augment.ridge import centre
from tasks.encoder.unseen_words import NgramRows
from tasks.fasttext import FastText
from tasks.fasttext.matrices import sum_rows
from tasks.fasttext.ngrams import bucket_ids
from tasks.form import configurable, setting

_BLOCK = 16_384  # rows mapped at once: 20 MB of 300 dimensions


@configurable
class Pretrained:
    """N-gram rows of a fastText model, mapped linearly to where the trained words are."""

    name: Literal["pretrained"] = "pretrained"
    model: str = setting("", "fastText model file (.bin) with n-grams, not pruned", content=True)
    vocabulary: int = setting(
        20_000,
        "Most frequent words of the file whose n-grams are kept beside those of the trained words",
        ge=0,
    )
    map_ridge: float = setting(
        0.01, "λ of the map, in units of the mean variance of a dimension; higher trusts the file less", gt=0
    )

    def fit(self, words: Sequence[str], rows: np.ndarray, document_frequency: np.ndarray) -> NgramRows:
        """N-gram rows in the space of trained words; arguments as of Distilled.fit."""
        if not self.model:
            option = "augment.strategy.model"
            raise ValueError(f"{option} names no fastText model file; --set {option}=FILE.bin does")
        file = FastText.open(self.model)
        header, dictionary = file.header, file.dictionary
        if header.maxn == 0 or header.bucket == 0 or dictionary.pruned is not None:
            found = f"(maxn {header.maxn}, pruned: {dictionary.pruned is not None})"
            lacks = f"{self.model} has no n-grams of its own for every bucket {found}"
            raise ValueError(f"{lacks}; give a model trained with them")
        ids = bucket_ids(words, header.minn, header.maxn, header.bucket)
        usable = ids.lengths > 0
        if usable.sum() < 2:
            long = f"{int(usable.sum())} of {len(words)} trained words are long enough"
            raise ValueError(f"{long} for an n-gram of {header.minn} characters; two or more are needed")
        offset = dictionary.word_count
        sums = sum_rows(file.matrix.take, Ragged(ids.offsets, ids.values + offset), file.dim)
        sources = sums / np.maximum(ids.lengths, 1)[:, None]
        centred, mean, norm = centre(rows, document_frequency)
        sources, targets = sources[usable].astype(float), centred[usable].astype(float)
        gram = sources.T @ sources
        penalty = self.map_ridge * max(float(np.trace(gram)) / len(gram), 1e-12)
        matrix = np.linalg.solve(gram + penalty * np.eye(len(gram)), sources.T @ targets).astype(np.float32)
        frequent = [dictionary.word(number) for number in range(min(self.vocabulary, offset))]
        others = bucket_ids(frequent, header.minn, header.maxn, header.bucket)
        used = np.unique(np.concatenate([ids.values, others.values]))
        blocks = (used[start : start + _BLOCK] + offset for start in range(0, len(used), _BLOCK))
        return NgramRows(
            shortest=header.minn, longest=header.maxn, buckets=header.bucket, bucket_ids=used,
            rows=np.concatenate([file.matrix.take(block) @ matrix for block in blocks]), mean=mean, norm=norm,
        )  # fmt: skip
