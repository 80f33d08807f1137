"""Computes the similarity of titles, corrected for the number of similar titles around each of them.

Cosines are not comparable between parts of a guide: a football match may have a hundred titles with a cosine
of .9, while the nearest title of a documentary has .6. A cosine is therefore compared with the *crowd* of
both titles, which is high if many titles are near:

    near(l, t) = max(0, REACH + cos(l, t) - (crowd_l + crowd_t) / 2)

crowd_i is the mean cosine of title i to the nearest title in each of GROUPS random groups of titles. The
nearness of two titles is REACH if their cosine equals their mean crowd, and 0 if they have nothing in common.

References: Conneau, Lample, Ranzato, Denoyer, Jégou, *Word translation without parallel data*, ICLR 2018
(cross-domain similarity local scaling). We differ: the nearest titles of groups replace the k nearest, which
requires no sorting.
"""

import numpy as np

REACH = 0.3  # nearness of two titles whose cosine equals their mean crowd
GROUPS = 10  # groups of titles in which the nearest title is searched
SAMPLE_SIZE = 2_048  # maximum number of titles in all groups; crowds of 5,000 titles take .1 s
ROW_BATCH = 1_024  # titles per matrix product
CROWD_WITHOUT_VECTOR = 4.0  # crowd of a title without a vector: large, so that it is near no title


def crowds(vectors: np.ndarray) -> np.ndarray:
    """Computes how many similar titles surround each title (its crowd), float32 (titles,).

    A zero vector has the crowd CROWD_WITHOUT_VECTOR. ``vectors`` are float32 (titles, dim).
    """
    step = -(-len(vectors) // SAMPLE_SIZE) or 1
    sample_rows = np.arange(0, len(vectors), step)
    groups = min(GROUPS, len(sample_rows))
    sample_rows = sample_rows[: len(sample_rows) // max(groups, 1) * groups]
    order = np.concatenate([sample_rows[group::groups] for group in range(groups)] or [sample_rows])
    column_of = np.full(len(vectors), -1)
    column_of[order] = np.arange(len(order))
    crowd, other_vectors = np.zeros(len(vectors), dtype=np.float32), vectors[order].T
    for start in range(0, len(vectors) if groups else 0, ROW_BATCH):
        columns = column_of[start : start + ROW_BATCH]
        cosines = vectors[start : start + ROW_BATCH] @ other_vectors
        cosines[np.flatnonzero(columns >= 0), columns[columns >= 0]] = 0  # excludes the title itself
        crowd[start : start + ROW_BATCH] = cosines.reshape(len(cosines), groups, -1).max(axis=2).mean(axis=1)
    crowd[~vectors.any(axis=1)] = CROWD_WITHOUT_VECTOR
    return crowd


def nearness(vectors: np.ndarray, crowd: np.ndarray, likes: np.ndarray, titles: np.ndarray) -> np.ndarray:
    """Computes the nearness of liked titles to other titles, float32 (likes, titles), at least 0.

    Args:
        vectors: Vectors of all titles, float32 (titles, dim).
        crowd: Result of ``crowds(vectors)``.
        likes: Rows of the liked titles.
        titles: Rows of the other titles.
    """
    values = vectors[likes] @ vectors[titles].T
    values += (REACH - crowd[likes] / 2)[:, None]
    values -= crowd[titles] / 2
    return np.maximum(values, 0, out=values)
