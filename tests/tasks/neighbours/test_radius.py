"""The radius form against float64, where float32 alone is wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.neighbours import rescoring
from tasks.neighbours.rescoring import ROUNDING, find_pairs_within


def unit(rows: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0).astype(np.float32)


def exact(vectors: np.ndarray) -> np.ndarray:
    wide = vectors.astype(np.float64)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    return wide @ wide.T


def count_within(vectors: np.ndarray, minimum_cosine: float) -> np.ndarray:
    """Counts the rows within a cosine of each row, including itself."""
    found = np.zeros(len(vectors), dtype=int)
    for top, left, rows, columns in find_pairs_within(vectors, minimum_cosine):
        np.add.at(found, rows + top, 1)
        np.add.at(found, columns + left, int(left > top))
    return found


def test_counts_of_a_square_known_by_hand():
    corners = unit(np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]]))
    assert count_within(corners, 1.0).tolist() == [1, 1, 1, 1]
    assert count_within(corners, 0.0).tolist() == [3, 3, 3, 3]
    assert count_within(corners, -1.0).tolist() == [4, 4, 4, 4]


@pytest.mark.parametrize("minimum", [0.4, -1.0, 1.1])
def test_every_pair_within_is_found_once(monkeypatch, minimum: float):
    monkeypatch.setattr(rescoring, "TILE_SIDE", 30)  # the last tiles are smaller
    vectors = unit(np.random.default_rng(0).normal(size=(101, 5)))
    found = np.zeros((101, 101), dtype=int)
    for top, left, rows, columns in find_pairs_within(vectors, minimum):
        np.add.at(found, (rows + top, columns + left), 1)
    np.testing.assert_array_equal(
        found[np.triu_indices(101)], (exact(vectors) >= minimum)[np.triu_indices(101)]
    )


@given(st.integers(0, 10_000), st.sampled_from([1e-3, 3e-4, 1e-4]))
@settings(max_examples=20)
def test_near_duplicates_are_counted_as_float64_counts_them(seed: int, spread: float):
    rng = np.random.default_rng(seed)
    vectors = unit(rng.normal(size=(1, 64)) + spread * rng.normal(size=(80, 64)))
    cosines = exact(vectors)
    threshold = float(
        np.median(cosines)
    )  # pairs within 1e-6 of it are many, and float32 misjudges some of them
    np.testing.assert_array_equal(count_within(vectors, threshold), (cosines >= threshold - ROUNDING).sum(1))


def test_empty():
    assert count_within(np.zeros((0, 3), np.float32), 0.5).tolist() == []
