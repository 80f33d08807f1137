"""The floor: every title is given the training titles' most frequent label."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.baselines.inputs import TitleInputs
from tasks.baselines.predictions import LabelledTitles, Predictions, predict_from_scores
from tasks.form import configurable


@dataclass(frozen=True)
class FittedMajority:
    """Training titles that hold each label: int64, shape (labels,)."""

    frequency: np.ndarray

    def predict(self, titles: TitleInputs) -> Predictions:
        """The same ranking for every title."""
        scores = np.zeros((len(titles), len(self.frequency)))
        return predict_from_scores(scores, np.zeros(scores.shape, dtype=bool), self.frequency)


@configurable
class Majority:
    """Ranks labels by their frequency in training; predicts the first."""

    name: Literal["majority"] = "majority"

    def fit(self, training: LabelledTitles) -> FittedMajority:
        """Counts the labels."""
        return FittedMajority(training.frequency)
