"""Exact k-NN of sparse rows by an inverted index: of each feature the rows that hold it, with their values.

A query adds up, feature by feature, the rows that share one with it, in float32 and in the order of the
features, as a product of two CSR matrices does: the cosines are those of scikit-learn's ``NearestNeighbors``
(``metric="cosine"``, ``algorithm="brute"``) bit for bit, which transposes the base once a block of queries.
"""

from typing import Any

import numpy as np

from tasks.compiled import compiled


def nearest_rows(queries: Any, base: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of ``base`` of greatest cosine above 0 with each query, ties by rising id; else -1 and 0.

    Args:
        queries: float32 CSR, shape (queries, features).
        base: float32 CSR, shape (rows, features).
        k: At least 1.

    Returns:
        Ids (int64) and cosines (float32), both of shape (queries, k).
    """
    from sklearn.preprocessing import normalize

    of_unit_norm: Any = normalize  # annotated as an array or a pair
    ids = np.full((queries.shape[0], k), -1, dtype=np.int64)
    cosines = np.zeros(ids.shape, dtype=np.float32)
    if not len(ids):  # scikit-learn refuses no rows
        return ids, cosines
    asked, index = of_unit_norm(queries), of_unit_norm(base).tocsc()
    sums = np.empty(base.shape[0], dtype=np.float32)
    parts = [part for matrix in (asked, index) for part in (matrix.indptr, matrix.indices, matrix.data)]
    compiled(_search)(*parts, sums, ids, cosines)
    return ids, cosines


def _search(  # numba: one function, arrays and numbers
    asked_offsets: np.ndarray,
    asked_features: np.ndarray,
    asked_values: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    values: np.ndarray,
    sums: np.ndarray,
    ids: np.ndarray,
    cosines: np.ndarray,
) -> None:
    k, one, zero = ids.shape[1], np.float32(1), np.float32(0)
    for query in range(len(ids)):
        sums[:] = zero
        for place in range(asked_offsets[query], asked_offsets[query + 1]):
            feature, value = asked_features[place], asked_values[place]
            for entry in range(offsets[feature], offsets[feature + 1]):
                sums[rows[entry]] += value * values[entry]
        for row in range(len(sums)):
            if sums[row] > zero:
                cosine = min(one - (one - sums[row]), one)  # rounded as a distance is
                if cosine > cosines[query, k - 1]:  # sorted by falling cosine; of equal ones the first stays
                    rank = k - 1
                    while rank > 0 and cosines[query, rank - 1] < cosine:
                        cosines[query, rank] = cosines[query, rank - 1]
                        ids[query, rank] = ids[query, rank - 1]
                        rank -= 1
                    cosines[query, rank], ids[query, rank] = cosine, row
