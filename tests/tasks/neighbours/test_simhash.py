"""SimHash against its theory, and near duplicates against comparing all pairs."""

import tracemalloc

import numpy as np
import pytest

from tasks.neighbours.simhash import (
    count_bands,
    draw_planes,
    find_near_duplicates,
    hamming,
    signatures,
)


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def pair_at(cosine: float, dim: int = 64) -> np.ndarray:
    rows = np.zeros((2, dim), dtype=np.float32)
    rows[0, 0], rows[1, 0], rows[1, 1] = 1, cosine, np.sqrt(1 - cosine**2)
    return rows


def distance(pair: np.ndarray, planes: np.ndarray) -> int:
    """Returns the number of bits in which the signatures of two rows differ."""
    left, right = signatures(pair, planes)
    return int(hamming(left[None], right[None])[0, 0])


def test_bits_known_by_hand():
    planes = np.ones((64, 2), dtype=np.float32)
    planes[0] = (-1, 0)
    found = signatures(np.array([[1, 0], [-1, 0], [0, 0]], dtype=np.float32), planes)
    assert found.shape == (3, 1) and found.dtype == np.uint64
    assert hamming(found[:1], found[1:2]).tolist() == [[64]]  # every plane parts them
    assert np.bitwise_count(found[:, 0]).tolist() == [63, 1, 64]  # a product of 0 counts as above


@pytest.mark.parametrize("bits", [64, 256, 1024])
@pytest.mark.parametrize("cosine", [0.0, 0.3, 0.7, 0.9])
def test_bias_and_spread_are_those_of_the_theory(bits: int, cosine: float):
    rng = np.random.default_rng(bits)
    pair = pair_at(cosine, 16)
    runs = 400
    distances = np.array(
        [distance(pair, rng.normal(size=(bits, 16)).astype(np.float32)) for _ in range(runs)]
    )
    share = np.arccos(cosine) / np.pi
    spread = np.sqrt(share * (1 - share) * bits)
    assert abs(distances.mean() - share * bits) < 4 * spread / np.sqrt(runs)
    assert distances.std() == pytest.approx(spread, rel=0.15)


def test_near_duplicates_are_those_of_all_pairs():
    rng = np.random.default_rng(5)
    vectors = unit(rng.normal(size=(2_000, 48)))
    vectors[1_000:1_400] = unit(
        vectors[:400] + rng.uniform(0.01, 0.06, size=(400, 1)).astype(np.float32) * rng.normal(size=(400, 48))
    )
    vectors[7] = 0
    wide = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    expected = set(zip(*(side.tolist() for side in np.nonzero(np.triu(wide >= 0.95, 1))), strict=True))
    pairs, cosines = find_near_duplicates(vectors, 0.95, np.random.default_rng(0))
    found = set(map(tuple, pairs.tolist()))
    assert found <= expected and len(found) >= 0.995 * len(expected) > 100
    assert (np.diff(cosines) <= 1e-9).all() and cosines.min() >= 0.95


@pytest.mark.parametrize("titles", [4_000, 8_000])
def test_near_duplicates_need_no_memory_for_all_pairs_of_a_band(titles: int):
    """Vectors so near each other that most share their bands: 511 pairs per title, of which few qualify.
    The list of the pairs of a band alone would be 4 kB per title."""
    rng = np.random.default_rng(1)
    vectors = unit(np.ones(8) + 0.02 * rng.normal(size=(titles, 8)))
    tracemalloc.start()
    pairs, _ = find_near_duplicates(vectors, 0.99995, rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(pairs) > titles
    assert peak < 2_000 * titles


def test_bands_and_limits():
    assert count_bands(1.0) == 1
    assert count_bands(0.99) < count_bands(0.95) < count_bands(0.9)
    share = 1 - np.arccos(0.95) / np.pi
    assert 1 - (1 - share**16) ** count_bands(0.95) >= 0.999
    assert find_near_duplicates(np.zeros((0, 8), np.float32), 0.9, np.random.default_rng(0))[0].shape == (
        0,
        2,
    )
    assert find_near_duplicates(np.zeros((4, 8), np.float32), 0.9, np.random.default_rng(0))[0].shape == (
        0,
        2,
    )
    assert find_near_duplicates(unit(np.ones((3, 8))), 0.9, np.random.default_rng(0))[0].tolist() == [
        [0, 1],
        [0, 2],
        [1, 2],
    ]
    with pytest.raises(ValueError, match="multiple of 64, got 100"):
        draw_planes(8, 100, np.random.default_rng(0))
