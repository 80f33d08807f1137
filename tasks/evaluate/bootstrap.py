"""Intervals by resampling groups: titles of one show (or of one franchise) stand or fall together.

A resample draws as many groups as there are, with replacement; the numbers are made from the groups' sums, so a
thousand resamples are a few matrix products. The same resamples serve every predictor of a protocol: differences are
paired. Intervals are percentiles (2.5 to 97.5).

References: Efron, Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 13; Field, Welsh, *Bootstrapping
clustered data*, 2007 (resample the clusters, keep what is in them).
"""

from __future__ import annotations

import numpy as np

from tasks.evaluate.metrics import METRICS, GroupSums, Judged, measure_weighted

LEVEL = 0.95


def number_groups(*keys: np.ndarray) -> np.ndarray:
    """Numbers the distinct combinations of keys from 0 without gaps: int64, shape (queries,)."""
    groups = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        numbers = np.unique(key, return_inverse=True)[1]
        groups = np.unique(groups * (int(numbers.max(initial=0)) + 1) + numbers, return_inverse=True)[1]
    return groups


def count_groups(groups: np.ndarray) -> int:
    """How many groups there are, where they are numbered from 0 without gaps."""
    return int(groups.max(initial=-1)) + 1


def draw_groups(group_count: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """How often each group was drawn in each resample: float32, shape (resamples, groups); rows sum to ``group_count``."""
    drawn = rng.integers(group_count, size=(resamples, group_count))
    cells = drawn + np.arange(resamples)[:, None] * group_count
    return np.bincount(cells.ravel(), minlength=resamples * group_count).reshape(resamples, group_count).astype(np.float32)


def intervals(judged: Judged, groups: np.ndarray, counts: np.ndarray) -> dict[str, list[float] | None]:
    """The 95 % interval of each of the five numbers; none where a single group leaves nothing to resample.

    Args:
        judged: The queries.
        groups: Group of each query, shape (queries,), numbered from 0 without gaps.
        counts: What :func:`draw_groups` gave, shape (resamples, groups).
    """
    if counts.shape[1] < 2 or not len(judged):
        return dict.fromkeys(METRICS)
    resampled = measure_weighted(GroupSums.of(judged, groups), counts)
    return {name: None if values is None else percentiles(values) for name, values in resampled.items()}


def resample_mean(values: np.ndarray, groups: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Means of per-query values in each resample: float64, shape (resamples,); of differences, the paired bootstrap.

    Args:
        values: Shape (queries,).
        groups: Group of each query, shape (queries,), numbered from 0 without gaps.
        counts: Shape (resamples, groups).
    """
    exact = counts.astype(np.float64)
    group_count = counts.shape[1]
    return exact @ np.bincount(groups, weights=values, minlength=group_count) / (exact @ np.bincount(groups, minlength=group_count))


def percentiles(values: np.ndarray) -> list[float]:
    """Lower and upper end of the middle 95 %."""
    tail = (1 - LEVEL) / 2
    return [float(end) for end in np.quantile(values, [tail, 1 - tail])]
