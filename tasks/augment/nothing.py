"""No vector of their own for unseen words: the default. The rows of their n-grams are in the bag, and more
adds nothing there (docs/log).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tasks.encoder.title_encoder import NgramRows
from tasks.form import configurable


@configurable
class NoNgramRows:
    """Words that training has not seen are in the bag by their n-grams alone."""

    name: Literal["none"] = "none"

    def fit(self, words: Sequence[str], rows: np.ndarray, document_frequency: np.ndarray) -> NgramRows:
        """No rows."""
        return NgramRows.none(rows.shape[1])
