"""Chooses score thresholds from which on predictions have a precision with 95 % confidence.

The precision of the titles with at least a score is too low with confidence if so many correct predictions
would be unlikely at the requested precision p: the lower bound of Clopper and Pearson for k correct of n
predictions is at least p exactly if P(X ≥ k) ≤ RISK for X ~ Binomial(n, p). This module needs no SciPy, which
is not in the light installation.

References:
    Clopper, Pearson. The use of confidence or fiducial limits illustrated in the case of the binomial.
    Biometrika 26, 1934.
"""

import math

import numpy as np

from storage.shapes import Bool, Float

RISK = 0.05  # probability that the precision is below the requested one


def lowest_threshold(
    scores: Float[np.ndarray, " titles"],
    correct: Bool[np.ndarray, " titles"],
    minimum_precision: float,
    risk: float = RISK,
) -> float:
    """Returns the lowest positive score from which on the precision reaches the minimum; infinity if none.

    Args:
        scores: Score of the prediction of each held-out title.
        correct: Whether the prediction is correct.
        minimum_precision: Requested precision.
        risk: Probability that the precision is lower.
    """
    order = np.argsort(-scores, kind="stable")
    descending = scores[order]
    is_last = np.append(descending[1:] < descending[:-1], True)[: len(scores)]  # of equal scores
    is_sufficient = reaches_precision(correct[order], minimum_precision, risk) & is_last & (descending > 0)
    return float(descending[is_sufficient].min(initial=np.inf))


def reaches_precision(
    correct: Bool[np.ndarray, " titles"], precision: float, risk: float = RISK
) -> Bool[np.ndarray, " titles"]:
    """Returns for n = 1, 2, … whether the first n predictions have the precision with confidence 1 − risk.

    The tail P(X ≥ k) for n + 1 predictions follows from that for n: another prediction adds p P(X = k − 1);
    another correct one, which increments k, subtracts P(X = k).
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
