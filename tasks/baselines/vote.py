"""The vote of the nearest titles, the same for our vectors and for TF-IDF.

Each neighbour gives one vote to each of its labels. Labels are ranked by votes, then by the summed similarity of those
who voted, then by frequency in training. Weighting votes by similarity instead was tried and changed nothing.

Written on the title are the labels that at least half of its neighbours hold: each neighbour's label is one draw from
the label's local probability, so this is the threshold of one half that is best for errors counted label by label, and
needs no setting. Where no label reaches it, the top vote is written.
"""

from __future__ import annotations

import numpy as np

from storage.arrays import Ragged
from tasks.baselines.predictions import Predictions, predict_from_scores

DECIMALS = 6  # similarities are float32: sums closer than this are a tie, whatever the order of adding


def vote(neighbours: np.ndarray, similarities: np.ndarray, labels: Ragged, frequency: np.ndarray) -> Predictions:
    """Lets neighbours vote.

    Args:
        neighbours: int64, shape (queries, k): rows of ``labels``, -1 where absent. A query without any gets the labels'
            frequencies as its ranking: the majority class.
        similarities: float32, shape (queries, k), each between -1 and 1; not read where the neighbour is absent.
        labels: Label ids of the training titles.
        frequency: Training titles that hold each label, shape (labels,).

    Raises:
        ValueError: Shapes differ, or a similarity is not between -1 and 1.
    """
    if neighbours.shape != similarities.shape or neighbours.ndim != 2:
        raise ValueError(f"neighbours and similarities must both be (queries, k), got {neighbours.shape} and {similarities.shape}")
    (query_count, k), label_count = neighbours.shape, len(frequency)
    rows, places = np.nonzero(neighbours >= 0)
    chosen = labels.take(neighbours[rows, places])
    weights = similarities[rows, places].astype(np.float64)
    if not (np.abs(weights) <= 1 + 1e-3).all():
        raise ValueError("similarities must lie between -1 and 1: are the vectors of unit norm, and numbers?")
    cells = np.repeat(rows, chosen.lengths) * label_count + chosen.values  # one an entry (query, label)
    size = query_count * label_count
    votes = np.bincount(cells, minlength=size).reshape(query_count, label_count)
    summed = np.bincount(cells, weights=np.repeat(weights, chosen.lengths), minlength=size).reshape(query_count, label_count)
    step = 4 * k * 10**DECIMALS  # one vote more weighs more than any sum of similarities; exact in float64 up to k = 40,000
    scores = votes * float(step) + np.rint(summed * 10**DECIMALS)
    present = (neighbours >= 0).sum(axis=1, keepdims=True)
    return predict_from_scores(scores, (votes > 0) & (2 * votes >= present), frequency, neighbours)
