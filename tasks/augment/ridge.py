"""n-gram rows by ridge regression, in closed form.

With S (words × buckets, entries 1/n_w) and T the words' targets, the rows are

    G = Sᵀ X,   (S Sᵀ + λ I) X = T,

solved by conjugate gradients on all dimensions at once: no learning rate, no seed.

Most buckets are those of few words (of random words 70 % of one, 92 % of three at most). A bucket of f words adds f² numbers to
S Sᵀ; from f = 3 down they are no more work than the way through S and back, and need no row of a bucket in between. So

    S Sᵀ = C Cᵀ + R Rᵀ

with C the buckets of more than three words, and R the others, multiplied out once: the same sum in another order.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from storage.arrays import Ragged

_RARE = 3  # words of a bucket that is multiplied out: f² − f ≤ 2 f


def solve_ridge(
    bags: Ragged, buckets: int, targets: np.ndarray, *, alpha: float, max_iter: int, tol: float
) -> np.ndarray:
    """Rows whose means over each word's bag come near its target.

    Args:
        bags: Numbers of each word's n-grams, 0 to buckets − 1, repeated where they repeat.
        buckets: How many there are.
        targets: float32 (words, dim).
        alpha: Regularization.
        max_iter: Most iterations of conjugate gradients.
        tol: Relative residual at which they end.

    Returns:
        float32 (buckets, dim).
    """
    shares = np.repeat(1.0 / np.maximum(bags.lengths, 1), bags.lengths).astype(np.float32)
    matrix = scipy.sparse.csr_matrix((shares, bags.values, bags.offsets), shape=(len(bags), buckets))
    matrix.sum_duplicates()
    solution = _conjugate_gradients(matrix, targets, alpha, max_iter, tol)
    return np.asarray(matrix.T.tocsr() @ solution, dtype=np.float32)  # as rows: each bucket's is written once


def _conjugate_gradients(bags: scipy.sparse.csr_matrix, targets: np.ndarray, alpha: float, max_iter: int, tol: float) -> np.ndarray:
    """X of (S Sᵀ + λ I) X = T, all columns together, each with its own step length."""
    rare = bags.getnnz(axis=0) <= _RARE
    few, common = bags[:, rare], bags[:, ~rare]
    transposed = common.T.tocsr()
    pairs = few @ few.T + scipy.sparse.diags_array(np.full(len(targets), alpha, dtype=np.float32))  # λ in its diagonal
    solution = np.zeros_like(targets)
    residual = targets.copy()
    direction = residual.copy()
    squared = np.einsum("ij,ij->j", residual, residual)
    enough = squared.max() * tol**2
    for _ in range(max_iter):
        if squared.max() <= enough:
            break
        image = common @ (transposed @ direction)
        image += pairs @ direction
        length = squared / np.maximum(np.einsum("ij,ij->j", direction, image), 1e-30)
        solution += length * direction
        image *= length
        residual -= image
        before, squared = squared, np.einsum("ij,ij->j", residual, residual)
        direction *= squared / np.maximum(before, 1e-30)
        direction += residual
    return solution
