"""Intervals by resampling groups: the titles of one show (or franchise) are drawn together.

Metrics come from the groups' sums, so a thousand resamples are a few matrix products. The same resamples
serve every predictor of a protocol, so differences are paired. Groups are numbered from 0 without gaps.

References: Efron, Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 13; Field, Welsh,
*Bootstrapping clustered data*, 2007 (resample the clusters, keep what is in them).
"""

import numpy as np

from storage.shapes import Float, Float32, Int, Int64
from tasks.scoring.metrics import METRICS, Judged, measure_weighted

LEVEL = 0.95


def number_groups(*keys: np.ndarray) -> Int64[np.ndarray, " queries"]:
    """Numbers the distinct combinations of keys from 0 without gaps."""
    groups = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        numbers = np.unique(key, return_inverse=True)[1]
        groups = np.unique(groups * (numbers.max(initial=0) + 1) + numbers, return_inverse=True)[1]
    return groups


def count_groups(groups: Int[np.ndarray, " queries"]) -> int:
    """How many groups there are."""
    return int(groups.max(initial=-1)) + 1


def draw_groups(
    group_count: int, resamples: int, rng: np.random.Generator
) -> Float32[np.ndarray, "resamples groups"]:
    """How often each group is drawn in each resample; rows sum to ``group_count``."""
    drawn = rng.integers(group_count, size=(resamples, group_count))
    cells = drawn + np.arange(resamples)[:, None] * group_count
    counts = np.bincount(cells.ravel(), minlength=resamples * group_count)
    return counts.reshape(resamples, group_count).astype(np.float32)


def intervals(
    judged: Judged, groups: Int[np.ndarray, " queries"], counts: Float[np.ndarray, "resamples groups"]
) -> dict[str, list[float] | None]:
    """The 95 % interval of each metric; ``counts`` are drawn groups. None with fewer than two groups."""
    if counts.shape[1] < 2 or not len(judged):
        return dict.fromkeys(METRICS)
    resampled = measure_weighted(judged, groups, counts)
    return {name: None if values is None else percentiles(values) for name, values in resampled.items()}


def resample_mean(
    values: Float[np.ndarray, " queries"],
    groups: Int[np.ndarray, " queries"],
    counts: Float[np.ndarray, "resamples groups"],
) -> Float[np.ndarray, " resamples"]:
    """Means of per-query values in each resample; of differences, the paired bootstrap."""
    exact = counts.astype(np.float64)
    sums, sizes = (np.bincount(groups, own, minlength=counts.shape[1]) for own in (values, None))
    return exact @ sums / (exact @ sizes)


def percentiles(values: np.ndarray) -> list[float]:
    """Lower and upper end of the middle 95 %."""
    tail = (1 - LEVEL) / 2
    return np.quantile(values, [tail, 1 - tail]).tolist()
