"""The floor: every title is given the training titles' most frequent labels, whatever it is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.baselines.predictions import LabelledTitles, Predictions, predict_from_scores


@dataclass(frozen=True, kw_only=True)
class Majority:
    """Ranks labels by their frequency in training; writes the first."""

    name: Literal["majority"] = "majority"

    def fit(self, training: LabelledTitles) -> FittedMajority:
        """Counts the labels."""
        return FittedMajority(training.frequency)


@dataclass(frozen=True)
class FittedMajority:
    """Label frequencies: int64, shape (labels,)."""

    frequency: np.ndarray

    def predict(self, texts: Sequence[str]) -> Predictions:
        """The same ranking for every title."""
        scores = np.zeros((len(texts), len(self.frequency)))
        return predict_from_scores(scores, np.zeros(scores.shape, dtype=bool), self.frequency)
