"""Finds exact nearest neighbours of sparse rows with an inverted index.

The index lists, for each feature, the rows that have the feature, and their values. The products of the
features that a query and a row have in common are summed in float32, in the order of the features. The
cosines are bitwise equal to the cosines of scikit-learn's ``NearestNeighbors`` (``metric="cosine"``,
``algorithm="brute"``), which is slower because it transposes the base for each block of queries.
"""

from typing import Any

import numpy as np

from tasks.compiled import compiled


def nearest_rows(queries: Any, base: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Finds the k rows of ``base`` with the largest positive cosine to each query; in a tie, the lowest rows.

    Args:
        queries: float32 CSR, shape (queries, features).
        base: float32 CSR, shape (rows, features).
        k: Number of neighbours, at least 1.

    Returns:
        The ids of the rows, int64 (queries, k), and the cosines, float32 (queries, k). If fewer than k rows
        have a positive cosine, the remaining ids are -1 and the cosines 0.
    """
    from sklearn.preprocessing import normalize

    normalize_rows: Any = normalize  # Any, because scikit-learn's annotation also allows a pair
    ids = np.full((queries.shape[0], k), -1, dtype=np.int64)
    cosines = np.zeros(ids.shape, dtype=np.float32)
    if not len(ids):  # scikit-learn rejects empty matrices
        return ids, cosines
    rows, index = normalize_rows(queries), normalize_rows(base).tocsc()
    sums = np.empty(base.shape[0], dtype=np.float32)
    arrays = [array for matrix in (rows, index) for array in (matrix.indptr, matrix.indices, matrix.data)]
    compiled(_search)(*arrays, sums, ids, cosines)
    return ids, cosines


def _search(  # compiled by numba, which requires arrays and numbers as arguments
    query_offsets: np.ndarray,
    query_features: np.ndarray,
    query_values: np.ndarray,
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
        for position in range(query_offsets[query], query_offsets[query + 1]):
            feature, value = query_features[position], query_values[position]
            for entry in range(offsets[feature], offsets[feature + 1]):
                sums[rows[entry]] += value * values[entry]
        for row in range(len(sums)):
            if sums[row] > zero:
                cosine = min(one - (one - sums[row]), one)  # rounded like 1 − distance in scikit-learn
                if cosine > cosines[query, k - 1]:  # descending; earlier rows win ties
                    rank = k - 1
                    while rank > 0 and cosines[query, rank - 1] < cosine:
                        cosines[query, rank] = cosines[query, rank - 1]
                        ids[query, rank] = ids[query, rank - 1]
                        rank -= 1
                    cosines[query, rank], ids[query, rank] = cosine, row
