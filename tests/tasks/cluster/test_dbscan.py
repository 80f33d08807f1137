"""DBSCAN compared with scikit-learn, and cases that the original leaves open."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.cluster import DBSCAN as Reference

from tasks.cluster import dbscan
from tasks.cluster.dbscan import (
    DBSCAN,
    component_sizes,
    density_clusters,
    k_distance_curve,
    merge_components,
    suggest_eps,
)
from tasks.cluster.graph import Neighbours
from tasks.neighbours import rescoring
from tasks.neighbours.similarity import top_neighbours


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def on_circle(*degrees: float) -> np.ndarray:
    angles = np.deg2rad(degrees)
    return unit(np.stack([np.cos(angles), np.sin(angles)], axis=1))


def same_groups(left: np.ndarray, right: np.ndarray) -> bool:
    pairs = set(zip(left.tolist(), right.tolist(), strict=True))
    return len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})


@given(
    st.integers(0, 10_000),
    st.integers(2, 160),
    st.integers(2, 5),
    st.integers(1, 8),
    st.floats(0.0005, 0.6),
    st.floats(0.01, 1.0),
    st.booleans(),
)
@settings(max_examples=120)
def test_core_titles_and_noise_are_those_of_scikit_learn(
    seed: int, titles: int, dim: int, min_samples: int, eps: float, spread: float, repeated: bool
):
    rng = np.random.default_rng(seed)
    vectors = unit(
        rng.normal(size=(6, dim))[rng.integers(6, size=titles)] + spread * rng.normal(size=(titles, dim))
    )
    if repeated:
        vectors = vectors[rng.integers(titles, size=titles)]
    wide = vectors.astype(np.float64)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    cosines = wide @ wide.T
    assume((np.abs(1 - cosines - eps) > 1e-10).all())  # nearer than that even two float64 programs may differ
    reference = Reference(eps=eps, min_samples=min_samples, metric="cosine", algorithm="brute").fit(
        vectors.astype(np.float64)
    )
    labels = density_clusters(vectors, eps, min_samples)
    core = reference.core_sample_indices_
    np.testing.assert_array_equal(labels < 0, reference.labels_ < 0)
    assert same_groups(labels[core], reference.labels_[core])
    for border in np.setdiff1d(np.flatnonzero(labels >= 0), core):
        assert labels[border] in labels[core][1 - cosines[border, core] <= eps]


REACH = 1 - np.cos(np.deg2rad(10.15))  # of core titles at 0 and at 20 degrees, a title near 10 is within both


def test_a_border_title_joins_its_nearest_core_title_in_any_order():
    vectors = on_circle(-2, -1, 0, 20, 21, 22, 9.9)
    for order in (np.arange(7), np.arange(7)[::-1], np.random.default_rng(0).permutation(7)):
        labels = np.empty(7, dtype=int)
        labels[order] = density_clusters(vectors[order], REACH, 4)
        assert labels[6] == labels[2] != labels[3] == labels[5]


def test_a_border_title_between_two_core_titles_joins_the_lower_id():
    low = on_circle(33, 34, 35)
    vectors = np.concatenate(
        [low, low[:, ::-1], on_circle(45)]
    )  # mirrored: the cosines are equal to the last bit
    assert (labels := density_clusters(vectors, REACH, 4))[6] == labels[0] != labels[3]
    swapped = np.concatenate([vectors[3:6], vectors[:3], vectors[6:]])
    assert (labels := density_clusters(swapped, REACH, 4))[6] == labels[0] != labels[3]


def test_clusters_are_numbered_largest_first_and_noise_is_minus_one():
    vectors = on_circle(100, 101, 102, 0, 1, 2, 3, 4, 200)
    partition = DBSCAN(eps=0.001, min_samples=2).cluster(
        vectors, Neighbours(np.zeros((9, 1), int), np.zeros((9, 1), np.float32)), seed=0
    )
    assert partition.clusters.tolist() == [1, 1, 1, 0, 0, 0, 0, 0, -1]


def test_eps_is_suggested_between_groups_and_loners():
    rng = np.random.default_rng(1)
    grouped = unit(np.repeat(rng.normal(size=(10, 32)), 30, axis=0) + 0.15 * rng.normal(size=(300, 32)))
    vectors = np.concatenate([grouped, unit(rng.normal(size=(30, 32)))])
    neighbours = Neighbours(*top_neighbours(vectors, vectors, 10, exclude_self=True))
    curve = k_distance_curve(neighbours, 5)
    assert curve[:300].max() < 0.2 < 0.4 < curve[305:].min()
    partition = DBSCAN(min_samples=5).cluster(vectors, neighbours, seed=0)
    assert curve[250] <= suggest_eps(neighbours, 5) < curve[305]
    assert partition.count == 10 and (partition.clusters[300:] == -1).all() and "suggested" in partition.note


def test_suggest_eps_needs_min_samples_neighbours():
    neighbours = Neighbours(np.zeros((3, 2), int), np.zeros((3, 2), np.float32))
    with pytest.raises(
        ValueError, match="min_samples 9 needs 8 neighbours of each title to suggest eps, but 2 are kept"
    ):
        suggest_eps(neighbours, 9)


def test_merging_a_chain_gives_one_component():
    nodes = np.arange(6, dtype=np.int32)
    merged = merge_components(nodes, np.array([4, 3, 2, 1]), np.array([3, 2, 1, 0]))
    assert merged.tolist() == [0, 0, 0, 0, 0, 5]


@pytest.mark.parametrize("eps", [0.02, 0.05, 0.3])
def test_early_reduction_of_pairs_gives_the_same_clusters(monkeypatch, eps):
    rng = np.random.default_rng(2)
    vectors = unit(rng.normal(size=(12, 8))[rng.integers(12, size=400)] + 0.3 * rng.normal(size=(400, 8)))
    whole = density_clusters(vectors, eps, 4)
    monkeypatch.setattr(rescoring, "TILE_SIDE", 16)
    monkeypatch.setattr(dbscan, "MAX_PENDING", 1)
    np.testing.assert_array_equal(density_clusters(vectors, eps, 4), whole)


def test_suggested_eps_separates_groups_that_the_knee_would_merge():
    """Groups along a chain: dense in their middles, so that a large eps runs through all of them."""
    rng = np.random.default_rng(0)
    middles = np.linspace(0, 170, 18)
    degrees = np.concatenate(
        [middle + rng.normal(0, 1.2, size=60) for middle in middles] + [np.linspace(0, 170, 250)]
    )
    vectors = on_circle(*degrees)
    neighbours = Neighbours(*top_neighbours(vectors, vectors, 25, exclude_self=True))
    eps = suggest_eps(neighbours, 5)
    labels = density_clusters(vectors, eps, 5)
    sizes = np.unique(labels[labels >= 0], return_counts=True)[1]
    assert len(sizes) >= 9 and sizes.max() < len(vectors) / 4


def test_sizes_read_from_the_neighbours_are_those_of_the_clusters():
    rng = np.random.default_rng(4)
    vectors = unit(rng.normal(size=(9, 6))[rng.integers(9, size=300)] + 0.25 * rng.normal(size=(300, 6)))
    neighbours = Neighbours(*top_neighbours(vectors, vectors, 299, exclude_self=True))
    tried = np.array([0.01, 0.03, 0.06, 0.2])
    clustered, largest = component_sizes(neighbours, 4, tried)
    for eps, among, most in zip(tried, clustered, largest, strict=True):
        labels = density_clusters(vectors, eps, 4)
        core = ((vectors @ vectors.T) >= 1 - eps).sum(1) >= 4
        assert core.sum() == among
        assert np.unique(labels[core], return_counts=True)[1].max() == most
