"""Contract of every clusterer."""

import dataclasses
from typing import get_args

import numpy as np
import pydantic
import pytest

from tasks.cluster import Clusterer
from tasks.cluster.graph import Neighbours
from tasks.cluster.stability import adjusted_rand
from tasks.neighbours.similarity import top_neighbours

CLUSTERERS = [pytest.param(kind(), id=kind().name) for kind in get_args(Clusterer)]


def run(clusterer: Clusterer, vectors: np.ndarray, seed: int = 0):
    return clusterer.cluster(
        vectors,
        Neighbours(*top_neighbours(vectors, vectors, clusterer.neighbours, exclude_self=True)),
        seed=seed,
    )


def with_cluster_count(clusterer: Clusterer, count: int) -> Clusterer:
    """Returns the strategy with the number of clusters set if it has such a field."""
    return dataclasses.replace(clusterer, clusters=count) if hasattr(clusterer, "clusters") else clusterer


def groups(
    sizes: list[int], dim: int = 32, spread: float = 0.08, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Returns well separated groups of unit vectors, and the group of each vector."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.linalg.qr(rng.normal(size=(dim, dim)))[0][truth] + spread * rng.normal(size=(len(truth), dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32), truth


@pytest.mark.parametrize("clusterer", CLUSTERERS)
def test_distant_groups_become_clusters_ordered_by_size(clusterer: Clusterer):
    vectors, truth = groups([90, 80, 70, 60, 50])
    partition = run(with_cluster_count(clusterer, 5), vectors)
    assert partition.clusters.dtype == np.int32 and partition.clusters.shape == (350,)
    assert adjusted_rand(truth, partition.clusters) > 0.9
    sizes = np.bincount(partition.clusters[partition.clusters >= 0])
    assert (np.diff(sizes) <= 0).all() and sizes.min() > 0 and partition.count == len(sizes)
    assert not partition.collapsed


@pytest.mark.parametrize("clusterer", CLUSTERERS)
def test_one_seed_gives_one_result(clusterer: Clusterer):
    vectors, _ = groups([30, 40, 50], spread=0.3)
    first, second = run(clusterer, vectors, seed=5), run(clusterer, vectors, seed=5)
    np.testing.assert_array_equal(first.clusters, second.clusters)
    assert (first.note, first.iterations, first.collapsed) == (
        second.note,
        second.iterations,
        second.collapsed,
    )


@pytest.mark.parametrize("clusterer", CLUSTERERS)
def test_the_order_of_the_titles_does_not_matter(clusterer: Clusterer):
    vectors, truth = groups([40, 50, 60, 70])
    shuffle = np.random.default_rng(1).permutation(len(truth))
    plain, shuffled = (
        run(with_cluster_count(clusterer, 4), vectors),
        run(with_cluster_count(clusterer, 4), vectors[shuffle]),
    )
    assert adjusted_rand(plain.clusters[shuffle], shuffled.clusters) > 0.99


@pytest.mark.parametrize("clusterer", CLUSTERERS)
def test_zero_rows_are_noise_and_change_nothing_else(clusterer: Clusterer):
    vectors, _ = groups([30, 40])
    expected = run(with_cluster_count(clusterer, 2), vectors).clusters
    with_zeros = np.insert(vectors, [0, 35, 70], 0, axis=0)
    labels = run(with_cluster_count(clusterer, 2), with_zeros).clusters
    zero = ~with_zeros.any(1)
    assert (labels[zero] == -1).all()
    assert adjusted_rand(labels[~zero], expected) > 0.99


@pytest.mark.parametrize("clusterer", CLUSTERERS)
def test_empty(clusterer: Clusterer):
    partition = run(clusterer, np.zeros((0, 4), np.float32))
    assert partition.clusters.shape == (0,) and partition.count == 0 and not partition.collapsed


@pytest.mark.parametrize("clusterer", CLUSTERERS)
@pytest.mark.parametrize("titles", [1, 3])
def test_all_zero(clusterer: Clusterer, titles: int):
    assert run(clusterer, np.zeros((titles, 4), np.float32)).clusters.tolist() == [-1] * titles


@pytest.mark.parametrize("clusterer", CLUSTERERS)
def test_single(clusterer: Clusterer):
    assert run(clusterer, np.eye(1, 4, dtype=np.float32)).clusters.tolist() == [-1]


@pytest.mark.parametrize("clusterer", CLUSTERERS)
def test_all_equal_vectors_are_one_collapsed_cluster(clusterer: Clusterer):
    partition = run(clusterer, np.tile(np.eye(1, 4, dtype=np.float32), (60, 1)))
    assert partition.count == 1 and partition.collapsed and "60 of 60 titles" in partition.note


@pytest.mark.parametrize("clusterer", CLUSTERERS)
def test_settings_are_checked(clusterer: Clusterer):
    adapter = pydantic.TypeAdapter(type(clusterer))
    assert adapter.validate_python({"name": clusterer.name}) == clusterer
    with pytest.raises(pydantic.ValidationError, match="no_such_setting"):
        adapter.validate_python({"no_such_setting": 1})
    with pytest.raises(pydantic.ValidationError, match="neighbours"):
        adapter.validate_python({"neighbours": 0})
