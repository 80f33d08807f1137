"""The bootstrap of sums compared with one that repeats rows."""

import numpy as np
import pytest

from tasks.scoring.bootstrap import (
    count_groups,
    draw_groups,
    intervals,
    number_groups,
    percentiles,
)
from tasks.scoring.metrics import METRICS, Judged, measure


def random_judged(rng: np.random.Generator, queries: int, labels: int) -> Judged:
    truth = rng.random((queries, labels)) < 1.5 / labels
    truth[np.arange(queries), rng.integers(labels, size=queries)] = True
    return Judged(
        rng.random(queries) < 0.4,
        1 / rng.integers(1, 9, queries),
        rng.integers(0, 11, queries) / 10,
        rng.random((queries, labels)) < 2 / labels,
        truth,
    )


def test_draws_as_many_groups_as_there_are_each_equally_often():
    counts = draw_groups(50, 4000, np.random.default_rng(1))
    assert counts.shape == (4000, 50) and (counts.sum(axis=1) == 50).all()
    np.testing.assert_allclose(counts.mean(axis=0), 1.0, atol=0.08)
    np.testing.assert_allclose(counts.var(), 1 - 1 / 50, atol=0.02)


def test_intervals_equal_a_slow_loop_that_repeats_the_rows():
    rng = np.random.default_rng(2)
    judged = random_judged(rng, 90, 7)
    groups = number_groups(rng.integers(0, 25, 90))
    counts = draw_groups(count_groups(groups), 200, rng)
    slow: dict[str, list[float]] = {name: [] for name in METRICS}
    for row in counts:
        rows = np.concatenate(
            [
                np.repeat(np.flatnonzero(groups == group)[None, :], int(times), axis=0).ravel()
                for group, times in enumerate(row)
            ]
        )
        for name, value in measure(judged.take(rows.astype(np.int64))).items():
            assert value is not None
            slow[name].append(value)
    fast = intervals(judged, groups, counts)
    for name in METRICS:
        assert fast[name] == pytest.approx(percentiles(np.array(slow[name])), abs=1e-6)


def test_titles_of_one_show_widen_the_interval():
    rng = np.random.default_rng(3)
    correct = np.repeat(np.arange(40) % 2 == 0, 25)  # 40 shows of 25 titles, each right or wrong as a whole
    judged = Judged(correct, correct.astype(float), None, correct[:, None], np.ones((1000, 1), dtype=bool))
    by_title = intervals(judged, np.arange(1000), draw_groups(1000, 500, rng))["accuracy"] or [0, 0]
    by_show = intervals(judged, np.arange(1000) // 25, draw_groups(40, 500, rng))["accuracy"] or [0, 0]
    assert by_show[1] - by_show[0] > 3.5 * (by_title[1] - by_title[0])  # √25 = 5 in theory


def test_interval_of_results_all_equal_is_a_point():
    judged = Judged(
        np.ones(9, dtype=bool), np.ones(9), None, np.ones((9, 1), dtype=bool), np.ones((9, 1), dtype=bool)
    )
    found = intervals(judged, np.arange(9), draw_groups(9, 100, np.random.default_rng(0)))
    assert found == {
        "accuracy": [1, 1],
        "micro_f1": [1, 1],
        "macro_f1": [1, 1],
        "precision_at_k": None,
        "mrr": [1, 1],
    }


def test_one_group_single_has_no_interval_and_neither_has_empty():
    judged = random_judged(np.random.default_rng(0), 5, 3)
    assert intervals(
        judged, np.zeros(5, dtype=np.int64), np.full((100, 1), 1, dtype=np.float32)
    ) == dict.fromkeys(METRICS)
    assert count_groups(number_groups(np.zeros(0, dtype=np.int64))) == 0


def test_groups_are_numbered_by_every_key():
    assert count_groups(number_groups(np.array([7, 7, 3]))) == 2
    numbered = number_groups(np.array(["a", "a", "b", "b", "a"]), np.array([5, 6, 5, 5, 5]))
    assert numbered.tolist() == [0, 1, 2, 2, 0]
