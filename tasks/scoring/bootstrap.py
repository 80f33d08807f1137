"""Computes confidence intervals of metrics by the bootstrap, with franchises as groups.

A resample draws groups with replacement, each with all its titles. Metrics are computed from sums per group,
so a thousand resamples take only a few matrix products. All predictors are scored on the same resamples.
Groups are numbered from 0 without gaps.

References: Efron, Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 13; Field, Welsh,
*Bootstrapping clustered data*, 2007 (resample clusters with all their members).
"""

import numpy as np

from storage.shapes import Float, Float32, Int, Int64
from tasks.scoring.metrics import METRICS, Judged, measure_weighted

LEVEL = 0.95  # probability that an interval contains the true value


def number_groups(*keys: np.ndarray) -> Int64[np.ndarray, " queries"]:
    """Numbers the groups of queries (titles). Queries with equal keys are in the same group."""
    groups = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        numbers = np.unique(key, return_inverse=True)[1]
        groups = np.unique(groups * (numbers.max(initial=0) + 1) + numbers, return_inverse=True)[1]
    return groups


def count_groups(groups: Int[np.ndarray, " queries"]) -> int:
    """Returns the number of groups, from the group number of each query."""
    return int(groups.max(initial=-1)) + 1


def draw_groups(
    group_count: int, resamples: int, rng: np.random.Generator
) -> Float32[np.ndarray, "resamples groups"]:
    """Draws bootstrap resamples of groups. Returns how often each resample contains each group."""
    drawn_groups = rng.integers(group_count, size=(resamples, group_count))
    cells = drawn_groups + np.arange(resamples)[:, None] * group_count
    counts = np.bincount(cells.ravel(), minlength=resamples * group_count)
    return counts.reshape(resamples, group_count).astype(np.float32)


def intervals(
    judged: Judged, groups: Int[np.ndarray, " queries"], counts: Float[np.ndarray, "resamples groups"]
) -> dict[str, list[float] | None]:
    """Computes the 95 % interval [low, high] of each metric; None if there are fewer than two groups.

    Args:
        judged: Predictions compared with the true labels.
        groups: Group of each query.
        counts: How often each resample contains each group (``draw_groups``).
    """
    if counts.shape[1] < 2 or not len(judged):
        return dict.fromkeys(METRICS)
    resampled = measure_weighted(judged, groups, counts)
    return {name: None if values is None else percentiles(values) for name, values in resampled.items()}


def resample_mean(
    values: Float[np.ndarray, " queries"],
    groups: Int[np.ndarray, " queries"],
    counts: Float[np.ndarray, "resamples groups"],
) -> Float[np.ndarray, " resamples"]:
    """Computes the mean of ``values`` in each resample. Values may be differences (paired bootstrap).

    ``groups`` is the group of each query, and ``counts`` is how often each resample contains each group.
    """
    counts64 = counts.astype(np.float64)
    sums, sizes = (np.bincount(groups, weights, minlength=counts.shape[1]) for weights in (values, None))
    return counts64 @ sums / (counts64 @ sizes)


def percentiles(values: np.ndarray) -> list[float]:
    """Returns the 2.5th and the 97.5th percentile of values."""
    tail = (1 - LEVEL) / 2
    return np.quantile(values, [tail, 1 - tail]).tolist()
