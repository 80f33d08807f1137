"""No n-gram rows: what `guidespace ablate` compares with."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tasks.encoder.title_encoder import NgramRows
from tasks.form import configurable


@configurable
class NoNgramRows:
    """Words that training has not seen are left out of the bag."""

    name: Literal["none"] = "none"

    def fit(self, words: Sequence[str], rows: np.ndarray, document_frequency: np.ndarray) -> NgramRows:
        """No rows."""
        return NgramRows.none(rows.shape[1])
