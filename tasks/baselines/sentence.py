"""Predicts categories by k-NN of sentence vectors, to show the quality of the pretrained encoder alone.

The baseline ignores context tokens, so its scores are equal with and without contexts, and the neighbours of
titles are searched only once.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from storage.shapes import Float32
from tasks.baselines.inputs import TitleInputs
from tasks.baselines.predictions import LabelledTitles, Predictions, vote
from tasks.form import configurable, setting
from tasks.neighbours.similarity import top_neighbours


@dataclass(frozen=True)
class FittedSentenceKnn:
    """Trained baseline: training titles, their sentence vectors, and the number k of neighbours that vote."""

    training_vectors: Float32[np.ndarray, "titles features"]
    training: LabelledTitles
    k: int

    def predict(self, titles: TitleInputs) -> Predictions:
        """Predicts labels by the vote of the nearest titles. A title with a zero vector has no neighbours."""
        training_vectors, ids, cosines = titles.cache.get((SentenceKnn, self.k), (None, None, None))
        if training_vectors is not self.training_vectors:
            ids, cosines = top_neighbours(titles.sentence_features, self.training_vectors, self.k)
            ids, cosines = np.where(cosines > 0, ids, -1), np.maximum(cosines, 0)
            titles.cache[SentenceKnn, self.k] = self.training_vectors, ids, cosines
        return vote(ids, cosines, self.training.labels, self.training.frequency)


@configurable
class SentenceKnn:
    """Baseline: the k training titles with the most similar sentence vectors vote for labels."""

    name: Literal["sentence_knn"] = "sentence_knn"
    k: int = setting(10, "Number of neighbours that vote.", ge=1)

    def fit(self, training: LabelledTitles) -> FittedSentenceKnn:
        """Stores the training titles. Raises NoSentenceVectors if they have no sentence vectors."""
        return FittedSentenceKnn(training.titles.require_sentence_features(), training, self.k)
