"""N-gram rows compared with a dense ridge regression, and vectors of unseen words."""

import numpy as np
import pytest

from storage.arrays import Ragged
from tasks.augment.distilled import Distilled
from tasks.augment.ridge import solve_ridge
from tasks.encoder.unseen_words import NgramRows
from tasks.fasttext.ngrams import bucket_ids

WORDS = ["kitchen", "kitchens", "baker", "bakery", "goal", "goals", "goalie", "murder", "murders"]
DIM = 6


def rows() -> np.ndarray:
    """Makes vectors: words of one family have a common direction, plus a part of their own."""
    rng = np.random.default_rng(0)
    family = np.array([0, 0, 1, 1, 2, 2, 2, 3, 3])
    return (np.eye(DIM)[family] * 3 + rng.normal(size=(len(WORDS), DIM)) * 0.4).astype(np.float32)


def fitted(alpha: float = 0.1, **changes) -> NgramRows:
    return Distilled(alpha=alpha, max_iter=500, tol=1e-9, **changes).fit(WORDS, rows(), np.arange(len(WORDS)))


def bags(words: list[str], used: np.ndarray, distilled: Distilled) -> np.ndarray:
    """Returns the share of each used bucket in each word, as a dense array."""
    ids = bucket_ids(words, distilled.shortest, distilled.longest, distilled.buckets)
    shares = np.zeros((len(words), len(used)))
    for word in range(len(words)):
        for bucket in ids[word]:
            shares[word, np.searchsorted(used, bucket)] += 1 / len(ids[word])
    return shares


@pytest.mark.parametrize("alpha", [0.01, 0.1, 3.0])
def test_rows_are_the_ridge_regression(alpha: float):
    """Sᵀ (S Sᵀ + λ I)⁻¹ T = (Sᵀ S + λ I)⁻¹ Sᵀ T, solved dense in float64."""
    found, setting = fitted(alpha=alpha), Distilled()
    unit = rows().astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    shares = bags(WORDS, found.bucket_ids, setting)
    expected = np.linalg.solve(
        shares.T @ shares + alpha * np.eye(shares.shape[1]), shares.T @ (unit - unit.mean(axis=0))
    )
    np.testing.assert_allclose(found.rows, expected, atol=2e-5)
    np.testing.assert_allclose(found.mean, unit.mean(axis=0), atol=1e-6)


def test_buckets_of_any_number_of_words_are_the_ridge_regression():
    """Some in one word, some in two, three, four and in all, some twice in a word, and a word without any."""
    rng, words, buckets = np.random.default_rng(1), 12, 40
    bags = [[0, *rng.integers(1, buckets, size=rng.integers(1, 9)).tolist()] for _ in range(words)] + [
        [0, 7, 7],
        [],
    ]
    shares = np.array([np.bincount(bag, minlength=buckets) / max(len(bag), 1) for bag in bags])
    assert {1, 2, 3, 4, words + 1} <= set((shares > 0).sum(axis=0).tolist())
    targets = rng.normal(size=(len(bags), DIM)).astype(np.float32)
    expected = shares.T @ np.linalg.solve(shares @ shares.T + 0.1 * np.eye(len(bags)), targets)
    found = solve_ridge(Ragged.from_rows(bags), buckets, targets, alpha=0.1, max_iter=500, tol=1e-9)
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_norm_is_that_of_the_rarest_half():
    norms = np.linalg.norm(rows(), axis=1)
    assert fitted().norm == pytest.approx(np.median(norms[: len(WORDS) // 2 + 1]))


def test_few_buckets_collide_and_still_fit():
    found = fitted(buckets=3)
    assert found.bucket_ids.tolist() == [0, 1, 2] and np.isfinite(found.rows).all()
    assert found.vectors(["anything"])[1].all()


def test_words_that_are_too_short_for_ngrams():
    found = Distilled(shortest=5, longest=6).fit(["a", "kitchen"], rows()[:2], np.array([1, 1]))
    assert np.isfinite(found.rows).all() and found.vectors(["a"])[1].tolist() == [False]


def test_shortest_above_longest_is_an_error():
    with pytest.raises(ValueError, match=r"shortest is 7, but must be at most longest \(6\)"):
        Distilled(shortest=7)


def test_no_ngram_at_all_is_nothing_known():
    found = Distilled(shortest=9, longest=9).fit(["ab", "cd"], rows()[:2], np.array([1, 1]))
    vectors, known = found.vectors(["ab", "longerthannine"])
    assert not known.any() and not vectors.any()
