"""Maps n-gram rows of a pretrained fastText model linearly into the space of the trained words.

For each trained word, X (words × fastText dimensions) contains the mean of its n-gram rows in the file, and T
its centred unit-norm row in the model. The map is A = (XᵀX + λI)⁻¹ XᵀT, and the row of a bucket is its row in
the file times A. The map is linear, so the mean of mapped rows is the mapped mean, and unseen words benefit
from n-grams that were trained on a much larger corpus. X contains no word rows of the file, because an unseen
word has only n-grams.

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

_BLOCK = 16_384  # rows mapped at a time: 20 MB at 300 dimensions


@configurable
class Pretrained:
    """Strategy: maps n-gram rows of a pretrained fastText model to the space of trained rows."""

    name: Literal["pretrained"] = "pretrained"
    model: str = setting("", "fastText model file (.bin) with n-grams that are not pruned", content=True)
    vocabulary: int = setting(
        20_000,
        "Number of frequent words of the file whose n-grams are stored besides those of the trained words",
        ge=0,
    )
    map_ridge: float = setting(
        0.01, "λ of the map, relative to the mean diagonal element of XᵀX; if higher, rows are smaller", gt=0
    )

    def fit(self, words: Sequence[str], rows: np.ndarray, document_frequency: np.ndarray) -> NgramRows:
        """Returns n-gram rows in the space of the trained words; see Distilled.fit for the arguments."""
        if not self.model:
            option = "augment.strategy.model"
            raise ValueError(f"{option} names no fastText model file; pass --set {option}=FILE.bin")
        file = FastText.open(self.model)
        header, dictionary = file.header, file.dictionary
        if header.maxn == 0 or header.bucket == 0 or dictionary.pruned is not None:
            details = f"(maxn {header.maxn}, pruned: {dictionary.pruned is not None})"
            problem = f"{self.model} has no n-grams for every bucket {details}"
            raise ValueError(f"{problem}; use a model that was trained with n-grams and is not pruned")
        ids = bucket_ids(words, header.minn, header.maxn, header.bucket)
        usable = ids.lengths > 0
        if usable.sum() < 2:
            counts = f"{int(usable.sum())} of {len(words)} trained words have an n-gram"
            raise ValueError(f"{counts} of {header.minn} characters; at least two are needed")
        offset = dictionary.word_count
        sums = sum_rows(file.matrix.take, Ragged(ids.offsets, ids.values + offset), file.dim)
        sources = sums / np.maximum(ids.lengths, 1)[:, None]
        centred, mean, norm = centre(rows, document_frequency)
        sources, targets = sources[usable].astype(float), centred[usable].astype(float)
        gram = sources.T @ sources
        penalty = self.map_ridge * max(float(np.trace(gram)) / len(gram), 1e-12)
        matrix = np.linalg.solve(gram + penalty * np.eye(len(gram)), sources.T @ targets).astype(np.float32)
        frequent = [dictionary.word(number) for number in range(min(self.vocabulary, offset))]
        frequent_ngrams = bucket_ids(frequent, header.minn, header.maxn, header.bucket)
        used = np.unique(np.concatenate([ids.values, frequent_ngrams.values]))
        blocks = (used[start : start + _BLOCK] + offset for start in range(0, len(used), _BLOCK))
        return NgramRows(
            shortest=header.minn, longest=header.maxn, buckets=header.bucket, bucket_ids=used,
            rows=np.concatenate([file.matrix.take(block) @ matrix for block in blocks]), mean=mean, norm=norm,
        )  # fmt: skip
