"""Large clusters are divided into subclusters; small ones are not."""

import numpy as np
import pytest

from tasks.cluster import DBSCAN, ChineseWhispers, SimHashClusters
from tasks.cluster.parts import MIN_SPLIT_SIZE, split_clusters


def grouped(generator: np.random.Generator, groups: int, size: int, near: float) -> np.ndarray:
    """Groups whose centres have a common part of weight ``near``: cosines of all pairs are high."""
    centres = np.eye(groups, 24) + near * np.eye(1, 24, 23)
    rows = np.repeat(centres, size, axis=0) + 0.05 * generator.normal(size=(groups * size, 24))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_groups_within_a_cluster_become_its_parts():
    vectors = grouped(np.random.default_rng(0), 4, 30, near=3)
    small = grouped(np.random.default_rng(1), 2, MIN_SPLIT_SIZE // 2 - 1, near=3)
    vectors = np.vstack([vectors, small, np.zeros((2, 24), np.float32)])
    clusters = np.repeat([0, 1, -1], [120, len(small), 2])
    parts, parents = split_clusters(ChineseWhispers(), vectors, clusters)
    groups = [set(parts[30 * group : 30 * group + 30].tolist()) for group in range(4)]
    assert sorted(map(tuple, groups)) == [(0,), (1,), (2,), (3,)] and parents == [0] * 4
    assert (parts[120:] == -1).all()


def test_sentence_vectors_divide_clusters_with_equal_airings():
    generator = np.random.default_rng(0)
    alike = grouped(generator, 1, 80, near=3)
    sentences = grouped(generator, 2, 40, near=0).astype(np.float16)
    clusters = np.zeros(80, dtype=np.int64)
    parts, parents = split_clusters(SimHashClusters(clusters=2), alike, clusters, sentences)
    assert sorted([set(parts[:40].tolist()), set(parts[40:].tolist())], key=min) == [{0}, {1}]
    assert parents == [0, 0]


def test_a_part_belongs_to_one_cluster_and_one_seed_gives_one_result():
    vectors = np.vstack([grouped(np.random.default_rng(seed), 3, 30, near=2) for seed in (0, 1)])
    clusters = np.repeat([0, 1], 90)
    parts, parents = split_clusters(ChineseWhispers(), vectors, clusters, seed=3)
    assert all(len(set(clusters[parts == part])) == 1 for part in range(len(parents)))
    assert [int(clusters[parts == part][0]) for part in range(len(parents))] == parents
    again, _ = split_clusters(ChineseWhispers(), vectors, clusters, seed=3)
    assert (again == parts).all()


@pytest.mark.parametrize("strategy", [DBSCAN(min_samples=20), DBSCAN(min_samples=20, eps=0.2, neighbours=1)])
def test_dbscan_with_many_samples_per_core_title(strategy: DBSCAN):
    vectors = grouped(np.random.default_rng(0), 3, 30, near=1)
    parts, parents = split_clusters(strategy, vectors, np.zeros(90, dtype=np.int64))
    assert parents == [0] * 3 and all(len(set(parts[first : first + 30])) == 1 for first in (0, 30, 60))


def test_empty():
    parts, parents = split_clusters(ChineseWhispers(), np.zeros((0, 3), np.float32), np.zeros(0, np.int64))
    assert len(parts) == 0 and parents == []
