"""Predicts the most frequent training label for every title, the simplest baseline."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.baselines.inputs import TitleInputs
from tasks.baselines.predictions import LabelledTitles, Predictions, predict_from_scores
from tasks.form import configurable


@dataclass(frozen=True)
class FittedMajority:
    """Trained baseline, which ranks labels by their number of training titles."""

    label_counts: np.ndarray  # number of training titles with each label, int64 (labels,)

    def predict(self, titles: TitleInputs) -> Predictions:
        """Ranks labels by their frequency in training, for every title."""
        scores = np.zeros((len(titles), len(self.label_counts)))
        return predict_from_scores(scores, np.zeros(scores.shape, dtype=bool), self.label_counts)


@configurable
class Majority:
    """Baseline: ranks labels by their frequency in training, and predicts the most frequent label."""

    name: Literal["majority"] = "majority"

    def fit(self, training: LabelledTitles) -> FittedMajority:
        """Counts the training titles of each label."""
        return FittedMajority(training.frequency)
