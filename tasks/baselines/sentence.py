"""k-NN by the frozen sentence vectors alone: what the pretrained encoder knows without any training of ours.

It reads nothing of how titles air, so its scores are the same in both forms, like the majority class's; its
neighbours are found once for both.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from storage.shapes import Float32
from tasks.baselines.inputs import TitleInputs
from tasks.baselines.predictions import LabelledTitles, Predictions, top_by_cosine, vote
from tasks.form import configurable, setting


@dataclass(frozen=True)
class FittedSentenceKnn:
    """Training titles and their dense vectors."""

    base: Float32[np.ndarray, "titles features"]
    training: LabelledTitles
    k: int

    def predict(self, titles: TitleInputs) -> Predictions:
        """The vote of each title's neighbours; a title of which nothing is known has none."""
        base, ids, cosines = titles.derived.get((SentenceKnn, self.k), (None, None, None))
        if base is not self.base:
            ids, cosines = top_by_cosine(titles.dense, self.base, self.k)
            titles.derived[SentenceKnn, self.k] = self.base, ids, cosines
        return vote(ids, cosines, self.training.labels, self.training.frequency)


@configurable
class SentenceKnn:
    """The k training titles of greatest cosine of sentence vectors vote."""

    name: Literal["sentence_knn"] = "sentence_knn"
    k: int = setting(10, "Neighbours that vote.", ge=1)

    def fit(self, training: LabelledTitles) -> FittedSentenceKnn:
        """Keeps the training titles; NoSentenceVectors where the corpus holds none."""
        return FittedSentenceKnn(training.titles.known_dense(), training, self.k)
