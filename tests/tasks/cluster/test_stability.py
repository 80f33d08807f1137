"""The adjusted Rand index, and agreement of several seeds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from tasks.cluster import ChineseWhispers
from tasks.cluster.graph import Neighbours
from tasks.cluster.partition import Partition
from tasks.cluster.stability import adjusted_rand, cluster_with_seeds, compare


def partition(*labels: int) -> Partition:
    return Partition(clusters=np.array(labels, dtype=np.int32))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=60))
def test_equal_to_scikit_learn(pairs: list[tuple[int, int]]):
    left, right = np.array(pairs).T
    assert adjusted_rand(left, right) == pytest.approx(adjusted_rand_score(left, right))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=1, max_size=40))
def test_noise_counts_as_clusters_of_one(pairs: list[tuple[int, int]]):
    left, right = (np.where(side < 0, 100 + np.arange(len(side)), side) for side in np.array(pairs).T)
    assert adjusted_rand(*np.array(pairs).T) == pytest.approx(adjusted_rand_score(left, right))


def test_the_typical_partition_has_the_highest_mean_agreement():
    stability = compare(
        [partition(0, 0, 0, 1, 1, 1), partition(0, 0, 0, 1, 1, -1), partition(0, 0, -1, 1, 1, -1)]
    )
    assert stability.typical is stability.partitions[1]
    assert stability.run_to_run_ari == pytest.approx(
        (stability.agreement[0, 1] + stability.agreement[0, 2] + stability.agreement[1, 2]) / 3
    )


def test_one_seed_agrees_with_itself_and_no_seed_is_refused():
    neighbours = Neighbours(np.array([[1], [0]]), np.array([[0.9], [0.9]], dtype=np.float32))
    vectors = np.array([[1, 0], [1, 0]], dtype=np.float32)
    assert cluster_with_seeds(ChineseWhispers(), vectors, neighbours, [7]).run_to_run_ari == 1
    with pytest.raises(ValueError, match="at least one seed"):
        cluster_with_seeds(ChineseWhispers(), vectors, neighbours, [])


def test_all_noise():
    assert adjusted_rand(np.array([-1, -1]), np.array([-1, -1])) == 1
    assert adjusted_rand(np.array([-1, -1]), np.array([0, 0])) == 0
