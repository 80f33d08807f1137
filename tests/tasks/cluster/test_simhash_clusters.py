"""Clustering by SimHash, in addition to the contract of clusterers."""

import numpy as np

from tasks.cluster import SimHashClusters
from tasks.cluster.graph import Neighbours
from tasks.cluster.simhash_clusters import draw_centres, nearest_centres, unit_means
from tasks.cluster.stability import adjusted_rand
from tasks.neighbours.simhash import draw_planes, signatures


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def groups(titles: int, count: int, spread: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(count, size=titles)
    return unit(rng.normal(size=(count, 48))[truth] + spread * rng.normal(size=(titles, 48))), truth


def no_neighbours(titles: int) -> Neighbours:
    return Neighbours(np.zeros((titles, 0), np.int64), np.zeros((titles, 0), np.float32))


def test_the_centre_of_the_fewest_differing_bits_by_brute_force():
    vectors, _ = groups(700, 9, 0.5)
    planes = draw_planes(48, 128, np.random.default_rng(1))
    titles, centres = signatures(vectors, planes), signatures(vectors[::7], planes)
    expected = np.bitwise_count(titles[:, None] ^ centres[None]).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(nearest_centres(titles, centres), expected)


def test_more_bits_make_better_clusters():
    vectors, truth = groups(3_000, 60, 1.1)
    found = [
        adjusted_rand(
            truth,
            SimHashClusters(clusters=60, bits=bits).cluster(vectors, no_neighbours(3_000), seed=0).clusters,
        )
        for bits in (64, 1_024)
    ]
    assert found[0] < found[1] - 0.1 and found[1] > 0.8


def test_more_centres_than_titles_and_a_random_sample_of_many_centres():
    vectors, truth = groups(2_000, 40, 0.2)
    labels = SimHashClusters(minimum_size=1).cluster(vectors, no_neighbours(2_000), seed=0).clusters
    assert (labels >= 0).all() and len(np.unique(labels)) > 1_000
    assert all(
        len(set(truth[labels == cluster].tolist())) == 1 for cluster in range(50)
    )  # each within one group
    centres = draw_centres(vectors, 600, np.random.default_rng(0))
    assert centres.shape == (600, 48) and len(np.unique(centres, axis=0)) == 600


def test_means_by_hand():
    points = np.array([[1, 0], [0, 1], [1, 0], [-1, 0]], dtype=np.float32)
    found = unit_means(points, np.array([1, 1, 3, 3]), np.eye(4, 2, dtype=np.float32))
    np.testing.assert_allclose(
        found, [[1, 0], [np.sqrt(0.5), np.sqrt(0.5)], [0, 0], [0, 0]], atol=1e-7
    )  # 0 and 2 have no titles, those of 3 cancel out
