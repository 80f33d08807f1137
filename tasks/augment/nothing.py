"""Default strategy, which prepares no vectors of unseen words.

The bag of a title already contains the trained n-grams of its unseen words. Additional vectors of the words
do not improve the title vectors.
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
        """Returns an empty table of n-gram rows, so that no unseen word gets a vector."""
        return NgramRows.empty(rows.shape[1])
