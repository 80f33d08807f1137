"""How near a title is to a liked one, by what is near for these two.

Cosines are not comparable between parts of a guide: a football match has a hundred titles at .9, a
documentary has its nearest at .6. So a cosine is compared with the crowd around both titles:

    near(l, t) = max(0, REACH + cos(l, t) - (crowd_l + crowd_t) / 2)

crowd_i is the mean cosine of title i to its nearest titles: of ten groups of titles, to the nearest in each.
At REACH two titles are as near as their nearest titles are; at 0 they have nothing in common.

References: Conneau, Lample, Ranzato, Denoyer, Jégou, *Word translation without parallel data*, ICLR 2018
(cross-domain similarity local scaling). We differ: the nearest of groups in place of the k nearest, which
needs no sort.
"""

import numpy as np

REACH = 0.3
GROUPS = 10
SAMPLE = 2_048  # titles that crowds are measured against: 5,000 titles take .1 s
ROWS = 1_024
ALONE = 4.0  # crowd of a title without a vector: nothing is near to it


def crowds(vectors: np.ndarray) -> np.ndarray:
    """float32 (titles,): the mean cosine of each title to its nearest; ALONE where its vector is zero."""
    step = -(-len(vectors) // SAMPLE) or 1
    sampled = np.arange(0, len(vectors), step)
    groups = min(GROUPS, len(sampled))
    sampled = sampled[: len(sampled) // max(groups, 1) * groups]
    order = np.concatenate([sampled[group::groups] for group in range(groups)] or [sampled])
    place = np.full(len(vectors), -1)
    place[order] = np.arange(len(order))
    found, others = np.zeros(len(vectors), dtype=np.float32), vectors[order].T
    for start in range(0, len(vectors) if groups else 0, ROWS):
        own = place[start : start + ROWS]
        cosines = vectors[start : start + ROWS] @ others
        cosines[np.flatnonzero(own >= 0), own[own >= 0]] = 0  # a title is not its own neighbour
        found[start : start + ROWS] = cosines.reshape(len(cosines), groups, -1).max(axis=2).mean(axis=1)
    found[~vectors.any(axis=1)] = ALONE
    return found


def nearness(vectors: np.ndarray, crowd: np.ndarray, likes: np.ndarray, titles: np.ndarray) -> np.ndarray:
    """How near rows ``likes`` and ``titles`` are: float32 (likes, titles), at least 0."""
    near = vectors[likes] @ vectors[titles].T
    near += (REACH - crowd[likes] / 2)[:, None]
    near -= crowd[titles] / 2
    return np.maximum(near, 0, out=near)
