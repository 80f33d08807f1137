"""Metrics compared with values computed by hand and with scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from storage.arrays import Ragged
from tasks.baselines.predictions import Predictions, vote
from tasks.neighbours.similarity import top_neighbours
from tasks.scoring.metrics import METRICS, Judged, judge, measure

TRAINING = Ragged.from_rows([[0], [0, 1], [1], [2]])


def predictions(
    ranks: list[list[int]], predicted: list[list[int]], neighbours: list[list[int]] | None = None
) -> Predictions:
    return Predictions(
        np.array(ranks, dtype=np.int32),
        np.array(predicted, dtype=bool),
        None if neighbours is None else np.array(neighbours),
    )


def test_four_queries_by_hand():
    truth = Ragged.from_rows([[0], [1, 2], [2], [0]])
    judged = judge(
        predictions(
            [[1, 2, 3], [1, 2, 3], [2, 3, 1], [3, 2, 1]],
            [[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]],
            [[0, 1, 2, 3], [0, 1, 2, 3], [3, -1, -1, -1], [-1, -1, -1, -1]],
        ),
        truth,
        TRAINING,
    )
    assert judged.correct.tolist() == [True, False, True, False]
    assert judged.reciprocal_rank.tolist() == pytest.approx([1, 1 / 2, 1, 1 / 3])
    assert judged.precision_at_k is not None
    assert judged.precision_at_k.tolist() == [2 / 4, 3 / 4, 1, 0]
    # Right: 0 once, 1 once, 2 once. Written: 0 twice, 1 twice, 2 twice. Held: 0 twice, 1 once, 2 twice.
    assert measure(judged) == {
        "accuracy": pytest.approx(1 / 2),
        "micro_f1": pytest.approx(2 * 3 / (6 + 5)),
        "macro_f1": pytest.approx((2 / 4 + 2 / 3 + 2 / 4) / 3),
        "precision_at_k": pytest.approx((2 / 4 + 3 / 4 + 1 + 0) / 4),
        "mrr": pytest.approx((1 + 1 / 2 + 1 + 1 / 3) / 4),
    }


def test_f1_equals_scikit_learns_over_the_labels_that_are_held():
    rng = np.random.default_rng(5)
    truth = np.column_stack(
        [rng.random((200, 9)) < 0.2, np.zeros(200, dtype=bool)]
    )  # nobody holds the last label
    truth[np.arange(200), rng.integers(0, 9, 200)] = True
    written = rng.random((200, 10)) < 0.25
    judged = Judged(truth.any(axis=1), np.ones(200), None, written, truth)
    measured = measure(judged)
    assert measured["micro_f1"] == pytest.approx(f1_score(truth, written, average="micro"), abs=1e-6)
    assert measured["macro_f1"] == pytest.approx(
        f1_score(truth, written, average="macro", labels=list(range(9)), zero_division=0), abs=1e-6
    )


def test_all_k_neighbours_count_for_precision():
    judged = judge(
        predictions([[1, 2, 3]], [[1, 0, 0]], [[0] * 10 + [3] * 5]), Ragged.from_rows([[0]]), TRAINING
    )
    assert judged.precision_at_k is not None and judged.precision_at_k.tolist() == [10 / 15]


def test_no_neighbours_no_precision():
    judged = judge(predictions([[1, 2, 3]], [[1, 0, 0]]), Ragged.from_rows([[0]]), TRAINING)
    assert judged.precision_at_k is None and measure(judged)["precision_at_k"] is None


def test_all_predictions_correct_all_equal():
    judged = judge(
        predictions([[1, 2, 3]] * 5, [[1, 0, 0]] * 5, [[0, 1]] * 5), Ragged.from_rows([[0]] * 5), TRAINING
    )
    assert set(measure(judged).values()) == {1.0}


def test_no_query_empty():
    judged = judge(
        Predictions(
            np.zeros((0, 3), dtype=np.int32), np.zeros((0, 3), dtype=bool), np.zeros((0, 4), dtype=np.int64)
        ),
        Ragged.from_rows([]),
        TRAINING,
    )
    assert measure(judged) == dict.fromkeys(METRICS)


def test_queries_that_cannot_be_scored_are_refused():
    one = predictions([[1, 2, 3]], [[1, 0, 0]])
    with pytest.raises(ValueError, match="query 0 has no label"):
        judge(one, Ragged.from_rows([[]]), TRAINING)
    with pytest.raises(ValueError, match="1 predictions for 2"):
        judge(one, Ragged.from_rows([[0], [1]]), TRAINING)


def test_knn_predicts_by_the_nearest_training_titles():
    base = np.array([[1, 0], [0.8, 0.6], [0, 1], [-1, 0]], dtype=np.float32)
    queries = np.array([[1, 0], [0, 1], [0, 0]], dtype=np.float32)
    made = vote(*top_neighbours(queries, base, 2), TRAINING, np.array([2, 2, 1]))
    assert made.neighbours is not None
    assert made.neighbours.tolist() == [[0, 1], [2, 1], [-1, -1]]
    assert made.top[:2].tolist() == [0, 1]
    # No token known: the majority class (0 and 1 are equally frequent), no neighbour, precision 0.
    judged = judge(made, Ragged.from_rows([[0], [1], [2]]), TRAINING)
    assert judged.precision_at_k is not None
    assert judged.precision_at_k.tolist() == [1, 1, 0]
    assert judged.reciprocal_rank[2] == pytest.approx(1 / 3)
