"""Which eps suits DBSCAN: the knee of the k-distance curve, or where the most titles are in groups that are not the largest.

In many dimensions distances grow without a knee worth the name: on 21,842 titles of four English guides the knee is at
.39, where one cluster holds 95 % of them. Raising eps from 0, titles first join small groups, then these grow together
into one (they percolate). Between the two lies the eps at which the most titles are in a cluster other than the largest;
there it is .11: 57 clusters, the largest with 8 %, and 75 % noise, which is what density says of titles.
"""

from __future__ import annotations

import numpy as np

from tasks.cluster.components import merge
from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import COLLAPSED_SHARE

ROUNDING = 1e-9  # float32's last digit must not leave the place itself outside
TRIED = 40  # places of the curve at which the components are looked at


def check_reach(kept: int, min_samples: int) -> None:
    """Whether eps can be suggested.

    Raises:
        ValueError: Fewer neighbours of each title are kept than min_samples asks for.
    """
    if kept < (needed := max(min_samples - 1, 1)):
        raise ValueError(f"min_samples {min_samples} needs {needed} neighbours of each title to suggest eps, but {kept} are kept. Raise neighbours, or set eps.")


def k_distance_curve(neighbours: Neighbours, min_samples: int) -> np.ndarray:
    """Cosine distance of each title to its (min_samples - 1)-th nearest, ascending; titles that have fewer left out.

    Raises:
        ValueError: Fewer neighbours were found than min_samples asks for.
    """
    check_reach(neighbours.ids.shape[1], min_samples)
    place = max(min_samples - 1, 1) - 1
    found = neighbours.ids[:, place] >= 0
    return np.sort(1.0 - neighbours.cosines[found, place].astype(np.float64))


def suggest_eps(neighbours: Neighbours, min_samples: int) -> float:
    """The knee; where one cluster would hold more than half of the titles there, the eps of the most titles outside the largest.

    What would be clustered is read from the neighbours alone: pairs of core titles of which one is among the nearest of
    the other.

    Args:
        neighbours: Nearest titles of each title, at least ``min_samples`` - 1 of them.
        min_samples: Titles within eps, itself included, that make a title core.
    """
    curve = k_distance_curve(neighbours, min_samples)
    if not len(curve):
        return 0.0
    knee = knee_of(curve)
    tried = np.unique(np.append(np.quantile(curve, np.linspace(0.01, 1, TRIED)) + ROUNDING, knee))
    clustered, largest = sizes_at(neighbours, min_samples, tried)
    if largest[np.searchsorted(tried, knee)] <= COLLAPSED_SHARE * len(curve) or (clustered == largest).all():
        return knee
    return float(np.clip(tried[int((clustered - largest).argmax())], 0, 2))


def sizes_at(neighbours: Neighbours, min_samples: int, tried: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Core titles, and those of the largest component, at each eps: int64, shape (tried,).

    Args:
        neighbours: Nearest titles of each title.
        min_samples: As above.
        tried: Distances, ascending.
    """
    titles, width = neighbours.ids.shape
    place = max(min_samples - 1, 1) - 1
    distances = 1.0 - neighbours.cosines.astype(np.float64)
    reach = np.where(neighbours.ids[:, place] >= 0, distances[:, place], np.inf)
    left = np.repeat(np.arange(titles, dtype=np.int32), width)
    right = neighbours.ids.reshape(-1).astype(np.int32)
    needed = np.where(right >= 0, np.maximum(np.maximum(reach[left], reach[right]), distances.reshape(-1)), np.inf)  # eps that links the pair
    step = np.searchsorted(tried, needed)
    order = np.argsort(step, kind="stable")
    ends = np.searchsorted(step[order], np.arange(len(tried)), side="right")
    components = np.arange(titles, dtype=np.int32)
    clustered, largest = np.zeros(len(tried), dtype=np.int64), np.zeros(len(tried), dtype=np.int64)
    for number, eps in enumerate(tried):
        own = order[ends[number - 1] if number else 0 : ends[number]]
        components = merge(components, components[left[own]], components[right[own]])
        core = reach <= eps
        clustered[number] = core.sum()
        largest[number] = np.bincount(components[core]).max() if core.any() else 0
    return clustered, largest


def knee_of(curve: np.ndarray) -> float:
    """The knee of the k-distance curve: its point farthest below the straight line from its first to its last point.

    Up to the knee distances grow slowly (titles inside groups), after it fast (titles on their own). Both axes are
    scaled to 0..1. A curve that lies nowhere below the line has no knee: its median is taken.

    References: V. Satopää, J. Albrecht, D. Irwin, B. Raghavan, Finding a "kneedle" in a haystack, ICDCSW 2011.
    """
    height = curve[-1] - curve[0]
    below = np.linspace(0, 1, len(curve)) - (curve - curve[0]) / (height or 1.0)
    knee = int(below.argmax()) if height > 0 and below.max() > 0 else len(curve) // 2
    return float(np.clip(curve[knee] + ROUNDING, 0, 2))
