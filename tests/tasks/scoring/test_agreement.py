"""Agreement of clusters with labels against scikit-learn, a naive B-cubed, and worlds with known answers."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, v_measure_score

from storage.arrays import Ragged
from tasks.scoring.agreement import (
    b_cubed,
    measure_agreement,
    measure_sizes,
    noise_as_singletons,
    reference_labels,
    score_partition,
)


def naive_b_cubed(clusters: np.ndarray, reference: np.ndarray) -> tuple[float, float]:
    together = clusters[:, None] == clusters[None, :]
    alike = reference[:, None] == reference[None, :]
    both = (together & alike).sum(axis=1)
    return float((both / together.sum(axis=1)).mean()), float((both / alike.sum(axis=1)).mean())


def test_b_cubed_of_a_world_by_hand():
    # Clusters {a a b} {b b}: precision (2/3 + 2/3 + 1/3 + 1 + 1) / 5, recall (1 + 1 + 1/3 + 2/3 + 2/3) / 5.
    precision, recall = b_cubed(np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1]))
    assert (precision, recall) == pytest.approx(((2 / 3 + 2 / 3 + 1 / 3 + 2) / 5, (2 + 1 / 3 + 4 / 3) / 5))


@pytest.mark.parametrize("seed", range(5))
def test_b_cubed_equals_the_naive_one(seed):
    rng = np.random.default_rng(seed)
    clusters, reference = rng.integers(0, 30, 300) * 7, rng.zipf(1.7, 300) % 12
    assert b_cubed(clusters, reference) == pytest.approx(naive_b_cubed(clusters, reference))


def test_scores_equal_scikit_learns():
    rng = np.random.default_rng(1)
    reference = rng.integers(0, 6, 200)
    clusters = np.where(rng.random(200) < 0.7, reference, rng.integers(0, 6, 200))
    found = score_partition(clusters, reference)
    assert found["ari"] == pytest.approx(adjusted_rand_score(reference, clusters))
    assert found["ami"] == pytest.approx(adjusted_mutual_info_score(reference, clusters))
    assert found["v_measure"] == pytest.approx(v_measure_score(reference, clusters))
    precision, recall = naive_b_cubed(clusters, reference)
    assert found["b_cubed"] == pytest.approx(2 * precision * recall / (precision + recall))


def test_noise_is_read_in_three_ways():
    clusters = np.array([4, 4, 9, 9, -1, -1, -1, -1])
    reference = np.array([0, 0, 1, 1, 0, 1, 0, -1])
    found = measure_agreement(clusters, reference)
    assert found["count"] == 2
    assert found["noise_share"] == 0.5
    assert found["n"] == 7  # the title without a label is not compared
    singled = np.array([4, 4, 9, 9, 10, 11, 12])
    assert found["ari"] == pytest.approx(adjusted_rand_score(reference[:7], singled))
    assert found["b_cubed_precision"] == pytest.approx(1.0)
    assert found["b_cubed_recall"] == pytest.approx(naive_b_cubed(singled, reference[:7])[1])
    clear = found["non_noise"]
    assert isinstance(clear, dict)
    assert clear["n"] == 4 and clear["ari"] == clear["ami"] == clear["v_measure"] == clear[
        "b_cubed"
    ] == pytest.approx(1.0)


def test_noise_titles_become_single_clusters():
    assert noise_as_singletons(np.array([3, -1, 0, -1], dtype=np.int32)).tolist() == [3, 4, 0, 5]


def test_titles_with_several_labels_are_held_to_the_most_frequent():
    labels = Ragged.from_rows([[0, 2], [1, 2], [], [2], [1, 0], [1]])  # 0 twice, 1 three times, 2 three times
    assert reference_labels(labels, 4).tolist() == [2, 1, -1, 2, 1, 1]  # 1 and 2 are equal: the lower id
    training = np.array([1, 0, 0, 0, 1, 0], dtype=bool)  # 0 twice, 1 once, 2 once
    assert reference_labels(labels, 4, training).tolist() == [0, 1, -1, 2, 0, 1]
    assert reference_labels(Ragged.from_rows([]), 4).tolist() == []
    assert reference_labels(Ragged.from_rows([[], [], []]), 4).tolist() == [-1, -1, -1]
    assert reference_labels(Ragged.from_rows([[], [3], []]), 4).tolist() == [-1, 3, -1]


def test_held_out_titles_are_scored_separately():
    clusters, reference = np.array([0, 0, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 1, 0])
    found = measure_agreement(clusters, reference, held_out=np.array([0, 0, 0, 0, 1, 1], dtype=bool))
    assert isinstance(found["held_out"], dict)
    assert found["held_out"]["n"] == 2 and found["held_out"]["b_cubed"] == 1.0


def test_agreement_empty():
    nothing = np.zeros(0, dtype=np.int32)
    found = measure_agreement(nothing, nothing)
    assert found["count"] == 0 and found["noise_share"] is None and found["ari"] is None and found["n"] == 0


def test_agreement_all_noise():
    found = measure_agreement(np.full(4, -1), np.array([0, 0, 1, 1]))
    assert found["count"] == 0 and found["noise_share"] == 1.0
    assert found["ari"] == 0.0
    assert isinstance(found["non_noise"], dict) and found["non_noise"]["ari"] is None


def test_sizes_known_by_hand():
    assert measure_sizes(np.array([0, 0, 0, 0, 1, 1, 2, -1])) == {
        "smallest": 1,
        "median": 2.0,
        "largest": 4,
        "largest_share": 0.5,
    }
    assert set(measure_sizes(np.full(3, -1)).values()) == {None}


def test_agreement_single_and_all_equal():
    assert score_partition(np.array([5]), np.array([2]))["b_cubed"] == 1.0
    merged = score_partition(np.zeros(10, dtype=int), np.arange(10) % 2)
    assert merged["ari"] == 0.0 and merged["b_cubed_precision"] == 0.5 and merged["b_cubed_recall"] == 1.0


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="3, 2 and 3 entries"):
        measure_agreement(np.zeros(3, dtype=int), np.zeros(2, dtype=int))
