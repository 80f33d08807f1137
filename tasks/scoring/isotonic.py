"""Fits isotonic regressions with NumPy only, because the light installation has no SciPy."""

import numpy as np

from storage.shapes import Float, Int


def fit_success_shares(
    scores: Float[np.ndarray, " titles"], outcomes: np.ndarray
) -> tuple[Float[np.ndarray, " knots"], Float[np.ndarray, " knots"], Int[np.ndarray, " titles"]]:
    """Fits an increasing function that maps a score to the share of positive outcomes at this score.

    Args:
        scores: Score of each title.
        outcomes: Outcome of each title: 1 or True if it is positive, else 0.

    Returns:
        The distinct scores in ascending order (knots), the fitted share at each knot, and the index of each
        title's knot.
    """
    knots, knot_ids, count = np.unique(scores, return_inverse=True, return_counts=True)
    shares = np.bincount(knot_ids, outcomes, len(knots)) / count
    return knots, increasing_fit(shares, count), knot_ids


def increasing_fit(values: Float[np.ndarray, " knots"], weights: np.ndarray) -> Float[np.ndarray, " knots"]:
    """Returns the non-decreasing sequence with the least weighted squared distance to ``values``.

    The method is to pool adjacent violators: while the mean of a block of values is not greater than the mean
    of the block before it, the two blocks are merged.

    References:
        Barlow, Bartholomew, Bremner, Brunk. Statistical Inference under Order Restrictions. 1972.
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight and length, with increasing means
    for mean, weight in zip(values.tolist(), weights.tolist(), strict=True):
        length = 1
        while blocks and blocks[-1][0] >= mean:
            previous_mean, previous_weight, previous_length = blocks.pop()
            mean = (mean * weight + previous_mean * previous_weight) / (weight + previous_weight)
            weight, length = weight + previous_weight, length + previous_length
        blocks.append((mean, weight, length))
    means, _, lengths = zip(*blocks, strict=True) if blocks else ((), (), ())
    return np.repeat(np.array(means), lengths)
