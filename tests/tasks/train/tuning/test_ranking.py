"""The ranking of tuning runs."""

from tasks.train.tuning.ranking import compare_with_preset, rank
from tasks.train.tuning.runs import EpochMetrics, TuningRun


def tuning_run(
    name: str,
    size: int,
    factor: float,
    scores: list[float],
    seconds: float = 1.0,
    state: float = 1.0,
    trouble: str = "",
    titles: int = 100,
) -> TuningRun:
    marks = tuple(
        EpochMetrics(10 * number, seconds * number, 1 / number, score)
        for number, score in enumerate(scores, start=1)
    )
    return TuningRun(name, size, factor, factor * 0.1, titles, state, marks, trouble)


RUNS = [
    tuning_run("plain", 8, 0.5, [0.20, 0.30]),
    tuning_run("plain", 8, 1.0, [0.39, 0.40], state=0.0),
    tuning_run("plain", 8, 2.0, [0.35, 0.38]),
    tuning_run("clever", 8, 0.5, [0.30, 0.405], seconds=3.0, state=2.0),
    tuning_run("clever", 8, 1.0, [0.1], trouble="all vectors are alike"),
    tuning_run("clever", 8, 2.0, [0.2, 0.2]),
    tuning_run("poor", 8, 1.0, [0.1, 0.1]),
    tuning_run("poor", 8, 2.0, [], trouble="the loss is nan"),
]


def test_the_best_rate_counts_and_the_first_mark_near_the_best():
    table = rank(RUNS)
    assert [
        (ranking.run.name, ranking.run.factor, ranking.steps, ranking.seconds, ranking.at_the_edge)
        for ranking in table
    ] == [
        ("clever", 0.5, 20, 6.0, True),
        ("plain", 1.0, 20, 2.0, False),
        ("poor", 1.0, None, None, True),
    ]


def test_a_failed_run_has_score_zero():
    assert tuning_run("a", 8, 1.0, [0.9], trouble="collapsed").score == 0


def test_a_small_difference_does_not_change_the_preset():
    text = compare_with_preset(rank(RUNS), "plain")
    assert (
        "The presets use plain: score 0.400, the mean over 1 sizes, with 0.00 optimizer state values" in text
    )
    assert (
        "The best is clever: 0.405, 2.00 optimizer state values, 3.0 times the seconds. "
        "The difference is within two standard errors (0.100) of a score of 100 titles" in text
    )


def test_sizes_are_ranked_separately():
    table = rank(
        [
            *RUNS,
            tuning_run("plain", 16, 1.0, [0.5, 0.6]),
            tuning_run("poor", 16, 1.0, [0.1, 0.2]),
            tuning_run("clever", 16, 1.0, [0.5, 0.5]),
        ]
    )
    assert [(ranking.run.size, ranking.run.name) for ranking in table] == [
        (8, "clever"),
        (8, "plain"),
        (8, "poor"),
        (16, "plain"),
        (16, "clever"),
        (16, "poor"),
    ]
    assert "The presets use plain: score 0.500, the mean over 2 sizes" in compare_with_preset(table, "plain")
