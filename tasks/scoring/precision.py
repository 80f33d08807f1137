"""Computes score thresholds above which predictions reach a requested precision with 95 % confidence.

Let k of the n predictions above a threshold be correct. They reach the precision p with 95 % confidence if
the lower bound of Clopper and Pearson is at least p. This is the case exactly if k or more correct
predictions would be unlikely at the precision p: P(X ≥ k) ≤ RISK for X ~ Binomial(n, p). This module needs no
SciPy, which is not in the light installation.

References:
    Clopper, Pearson. The use of confidence or fiducial limits illustrated in the case of the binomial.
    Biometrika 26, 1934.
"""

import math

import numpy as np

from storage.shapes import Bool, Float

RISK = 0.05  # probability that the precision is lower than requested


def lowest_threshold(
    scores: Float[np.ndarray, " titles"],
    correct: Bool[np.ndarray, " titles"],
    minimum_precision: float,
) -> float:
    """Computes the lowest threshold at which predictions reach the minimum precision.

    Args:
        scores: Score of the prediction for each held-out title.
        correct: Whether the prediction is correct.
        minimum_precision: Requested precision.

    Returns:
        The lowest positive score such that the predictions with at least this score reach the precision;
        infinity if there is no such score.
    """
    order = np.argsort(-scores, kind="stable")
    descending = scores[order]
    is_last = np.append(descending[1:] < descending[:-1], True)[: len(scores)]  # last of equal scores
    is_reached = reaches_precision(correct[order], minimum_precision)
    return float(descending[is_reached & is_last & (descending > 0)].min(initial=np.inf))


def reaches_precision(
    correct: Bool[np.ndarray, " titles"], precision: float, risk: float = RISK
) -> Bool[np.ndarray, " titles"]:
    """Returns for n = 1, 2, … whether the first n predictions reach the precision with confidence 1 − risk.

    The tail P(X ≥ k) for n + 1 predictions is computed from the tail for n predictions: each prediction adds
    p P(X = k − 1). If the new prediction is correct, k grows by 1, which subtracts P(X = k).
    """
    is_reached = np.full(len(correct), precision <= 0)
    if not 0 < precision < 1:
        return is_reached
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, len(correct) + 1)))]).tolist()
    log_p, log_q = math.log(precision), math.log1p(-precision)

    def probability(k: int, n: int) -> float:
        coefficient = log_factorial[n] - log_factorial[k] - log_factorial[n - k]
        return math.exp(coefficient + k * log_p + (n - k) * log_q)

    tail, k = 1.0, 0
    for n, is_correct in enumerate(correct.tolist()):
        tail += precision * probability(k - 1, n) if k else 0.0
        if is_correct:
            tail -= probability(k, n + 1)
            k += 1
        is_reached[n] = tail <= risk
    return is_reached
