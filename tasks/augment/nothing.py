"""Default strategy: no separate vectors for unseen words. The bag contains the rows of their n-grams, and
other vectors do not improve it (docs/log).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tasks.encoder.title_encoder import NgramRows
from tasks.form import configurable


@configurable
class NoNgramRows:
    """Represents unseen words only by the n-grams in the bag."""

    name: Literal["none"] = "none"

    def fit(self, words: Sequence[str], rows: np.ndarray, document_frequency: np.ndarray) -> NgramRows:
        """Returns no rows."""
        return NgramRows.none(rows.shape[1])
