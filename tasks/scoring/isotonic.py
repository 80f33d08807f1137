"""Fits isotonic regressions in NumPy, because SciPy is too large for the light installation."""

import numpy as np

from storage.shapes import Float, Int


def fit_shares(
    scores: Float[np.ndarray, " titles"], outcomes: np.ndarray
) -> tuple[Float[np.ndarray, " knots"], Float[np.ndarray, " knots"], Int[np.ndarray, " titles"]]:
    """Fits an increasing function from the score to the share of positive outcomes.

    Args:
        scores: Score of each title.
        outcomes: 1 or True for a positive outcome, else 0.

    Returns:
        Distinct scores in ascending order (knots), the fitted share at each knot, and the knot of each title.
    """
    knots, knot_ids, count = np.unique(scores, return_inverse=True, return_counts=True)
    shares = np.bincount(knot_ids, outcomes, len(knots)) / count
    return knots, increasing_fit(shares, count), knot_ids


def increasing_fit(values: Float[np.ndarray, " knots"], weights: np.ndarray) -> Float[np.ndarray, " knots"]:
    """Returns the increasing sequence with the least weighted squared distance to ``values``.

    Pools adjacent violators: while a block has a smaller mean than the block before it, both are merged.

    References:
        Barlow, Bartholomew, Bremner, Brunk. Statistical Inference under Order Restrictions. 1972.
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight and length, with increasing means
    for mean, weight in zip(values.tolist(), weights.tolist(), strict=True):
        length = 1
        while blocks and blocks[-1][0] >= mean:
            other_mean, other_weight, other_length = blocks.pop()
            mean = (mean * weight + other_mean * other_weight) / (weight + other_weight)
            weight, length = weight + other_weight, length + other_length
        blocks.append((mean, weight, length))
    means, _, lengths = zip(*blocks, strict=True) if blocks else ((), (), ())
    return np.repeat(np.array(means), lengths)
