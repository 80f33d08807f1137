"""What every strategy of the augment stage offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tasks.augment.unseen import NgramRows


class NgramSource(Protocol):
    """Where n-gram rows come from."""

    def fit(self, words: Sequence[str], rows: np.ndarray, document_frequency: np.ndarray) -> NgramRows:
        """N-gram rows in the space of trained words.

        Args:
            words: Case-folded words that training touched.
            rows: float32 (words, dim): their rows.
            document_frequency: int64 (words,): training titles that hold each.

        Raises:
            ValueError: Too few words to learn from, or a setting is missing.
            FastTextError: A model file that is named is none.
            OSError: It cannot be read.
        """
        ...
