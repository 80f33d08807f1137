"""k-NN in the space: what a title's ten nearest training titles say of its categories."""

from __future__ import annotations

import numpy as np

from storage.arrays import Ragged
from tasks.baselines.predictions import Predictions
from tasks.baselines.vote import vote
from tasks.neighbours.similarity import top_neighbours


def predict_labels(queries: np.ndarray, base: np.ndarray, labels: Ragged, frequency: np.ndarray, k: int = 10) -> Predictions:
    """Lets each query's nearest labelled training titles vote.

    A query of which no token is known (a zero row) has no neighbours and is given the majority class: it is scored,
    not left out.

    Args:
        queries: float32, shape (queries, dim), unit norm or zero.
        base: float32, shape (titles, dim), unit norm or zero: the labelled training titles.
        labels: Label ids of the training titles, none of them empty.
        frequency: Training titles that hold each label, shape (labels,).
        k: Neighbours that vote.

    Raises:
        ValueError: ``base`` and ``labels`` differ in number, or a vector is neither of unit norm nor zero.
    """
    if len(base) != len(labels):
        raise ValueError(f"{len(base)} training vectors for {len(labels)} rows of labels; there must be one vector a row")
    neighbours, cosines = top_neighbours(queries, base, k)
    return vote(neighbours, cosines, labels, frequency)
