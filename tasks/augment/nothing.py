"""Default strategy, which fits no vectors of unseen words.

The bag of a title already contains the trained n-grams of unseen words, and additional vectors do not improve
the title vectors.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tasks.encoder.title_encoder import NgramRows
from tasks.form import configurable


@configurable
class NoNgramRows:
    """Strategy: represents unseen words only by the trained rows of their n-grams."""

    name: Literal["none"] = "none"

    def fit(self, words: Sequence[str], rows: np.ndarray, document_frequency: np.ndarray) -> NgramRows:
        """Returns a source of vectors without rows, from which no word gets a vector."""
        return NgramRows.empty(rows.shape[1])
