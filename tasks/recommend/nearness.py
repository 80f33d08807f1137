"""Computes the nearness of titles: their similarity, corrected for the number of similar titles around them.

Cosines are not comparable between parts of a guide: a football match may have a hundred titles with a cosine
of .9, while the nearest title of a documentary has a cosine of .6. A cosine is therefore compared with the
*crowd* of the two titles, which is high if many titles are near:

    near(l, t) = max(0, REACH + cos(l, t) - (crowd_l + crowd_t) / 2)

To compute crowd_i, titles are divided into GROUPS groups. crowd_i is the mean, over the groups, of the cosine
of title i to the nearest title in the group. The nearness of two titles is REACH if their cosine equals their
mean crowd, and 0 if they have nothing in common.

References: Conneau, Lample, Ranzato, Denoyer, Jégou, *Word translation without parallel data*, ICLR 2018
(cross-domain similarity local scaling). We differ: the nearest title of each group replaces the k nearest
titles, which requires no sorting.
"""

import numpy as np

REACH = 0.3  # nearness of two titles whose cosine equals their mean crowd
GROUPS = 10  # number of groups of titles; the nearest title of each group is searched
SAMPLE_SIZE = 2_048  # maximum number of titles in all groups; crowds of 5,000 titles take .1 s
ROW_BATCH = 1_024  # number of titles per matrix product
CROWD_WITHOUT_VECTOR = 4.0  # crowd of a title without a vector: large, so that it is near no title


def crowds(vectors: np.ndarray) -> np.ndarray:
    """Computes how many similar titles surround each title (its crowd), float32 (titles,).

    A zero vector has the crowd CROWD_WITHOUT_VECTOR. ``vectors`` are float32 (titles, dim).
    """
    step = -(-len(vectors) // SAMPLE_SIZE) or 1
    sample_rows = np.arange(0, len(vectors), step)
    groups = min(GROUPS, len(sample_rows))
    sample_rows = sample_rows[: len(sample_rows) // max(groups, 1) * groups]
    grouped_rows = np.concatenate([sample_rows[group::groups] for group in range(groups)] or [sample_rows])
    column_of_row = np.full(len(vectors), -1)  # -1: the title is in no group
    column_of_row[grouped_rows] = np.arange(len(grouped_rows))
    crowd, grouped_vectors = np.zeros(len(vectors), dtype=np.float32), vectors[grouped_rows].T
    for start in range(0, len(vectors) if groups else 0, ROW_BATCH):
        columns = column_of_row[start : start + ROW_BATCH]
        cosines = vectors[start : start + ROW_BATCH] @ grouped_vectors
        cosines[np.flatnonzero(columns >= 0), columns[columns >= 0]] = 0  # excludes the title itself
        crowd[start : start + ROW_BATCH] = cosines.reshape(len(cosines), groups, -1).max(axis=2).mean(axis=1)
    crowd[~vectors.any(axis=1)] = CROWD_WITHOUT_VECTOR
    return crowd


def nearness(vectors: np.ndarray, crowd: np.ndarray, rated: np.ndarray, titles: np.ndarray) -> np.ndarray:
    """Computes the nearness of rated titles to other titles, float32 (rated titles, titles), at least 0.

    Args:
        vectors: Vectors of all titles, float32 (titles, dim).
        crowd: Result of ``crowds(vectors)``.
        rated: Rows of the titles that a viewer likes or dislikes.
        titles: Rows of the other titles.
    """
    values = vectors[rated] @ vectors[titles].T
    values += (REACH - crowd[rated] / 2)[:, None]
    values -= crowd[titles] / 2
    return np.maximum(values, 0, out=values)
