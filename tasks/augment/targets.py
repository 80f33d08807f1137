"""What n-grams should say of trained words: their unit-norm rows less the mean, and how long a word never seen will be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Targets(NamedTuple):
    """Targets of trained words.

    Attributes:
        centred: float32 (words, dim): unit-norm rows less their mean.
        mean: float32 (dim,): that mean; titles are sums, so it is added back to every word never seen.
        norm: Median norm of the rarer half of the words: the length of a word never seen.
    """

    centred: np.ndarray
    mean: np.ndarray
    norm: float


def centre(rows: np.ndarray, document_frequency: np.ndarray) -> Targets:
    """Targets from trained rows.

    Args:
        rows: float32 (words, dim).
        document_frequency: int64 (words,): training titles that hold each.
    """
    norms = np.linalg.norm(rows, axis=1)
    unit = rows / np.maximum(norms, 1e-12)[:, None]
    mean = unit.mean(axis=0)
    rare = norms[document_frequency <= np.median(document_frequency)]
    return Targets(unit - mean, mean.astype(np.float32), float(np.median(rare)))
