"""What a contest comes to, on courses written by hand."""

from pathlib import Path

import pytest

from tasks.contest.courses import Course, Mark
from tasks.contest.plot import plot_contest, write_plot
from tasks.contest.standing import standings, table_markdown, verdict


def course(name: str, size: int, factor: float, scores: list[float], seconds: float = 1.0, state: float = 1.0, trouble: str = "", titles: int = 100) -> Course:
    marks = tuple(Mark(10 * number, seconds * number, 1 / number, score) for number, score in enumerate(scores, start=1))
    return Course(name, size, factor, factor * 0.1, titles, state, marks, trouble)


COURSES = [
    course("plain", 8, 0.5, [0.20, 0.30]), course("plain", 8, 1.0, [0.39, 0.40], state=0.0), course("plain", 8, 2.0, [0.35, 0.38]),
    course("clever", 8, 0.5, [0.30, 0.405], seconds=3.0, state=2.0), course("clever", 8, 1.0, [0.1], trouble="all vectors are alike"), course("clever", 8, 2.0, [0.2, 0.2]),
    course("poor", 8, 1.0, [0.1, 0.1]), course("poor", 8, 2.0, [], trouble="the loss is nan"),
]  # fmt: skip


def test_the_best_rate_counts_and_the_first_mark_near_the_best():
    table = standings(COURSES)
    assert [(standing.course.name, standing.course.factor, standing.steps, standing.seconds, standing.at_the_edge) for standing in table] == [
        ("clever", 0.5, 20, 6.0, True),
        ("plain", 1.0, 20, 2.0, False),
        ("poor", 1.0, None, None, True),
    ]


def test_a_course_in_trouble_has_no_score():
    assert course("a", 8, 1.0, [0.9], trouble="collapsed").score == 0


def test_a_small_difference_does_not_sway_the_presets():
    text = verdict(standings(COURSES), "plain")
    assert "The presets use plain: score 0.400, the mean over 1 sizes, with 0.00 numbers of state" in text
    assert "The best is clever: 0.405, 2.00 numbers of state, 3.0 times the seconds. The difference is within two standard errors (0.100) of a score of 100 titles" in text


def test_a_large_difference_is_said():
    assert "The difference is more than two standard errors (0.100) of a score of 100 titles: consider train.rule=clever." in verdict(standings(COURSES), "poor")


def test_the_best_rule_being_the_presets_is_said():
    assert "It has the best score; next is plain with 0.400 and 0.00." in verdict(standings(COURSES), "clever")
    assert verdict(standings(COURSES), "absent") == "The presets use absent, which took no part."


def test_sizes_stand_apart():
    table = standings([*COURSES, course("plain", 16, 1.0, [0.5, 0.6]), course("poor", 16, 1.0, [0.1, 0.2]), course("clever", 16, 1.0, [0.5, 0.5])])
    assert [(standing.course.size, standing.course.name) for standing in table] == [(8, "clever"), (8, "plain"), (8, "poor"), (16, "plain"), (16, "clever"), (16, "poor")]
    assert "The presets use plain: score 0.500, the mean over 2 sizes" in verdict(table, "plain")


def test_the_table_has_a_row_a_rule_and_size():
    lines = table_markdown(standings(COURSES), "A sentence.").splitlines()
    assert lines[0] == "A sentence."
    assert "| 8 | clever | 0.05 (edge) | 0.5000 | 0.4050 | 20 | 6.00 | 6.00 | 2.00 |" in lines
    assert "| 8 | poor | 0.1 (edge) | 0.5000 | 0.1000 | never |  | 2.00 | 1.00 |" in lines
    assert table_markdown(standings(COURSES[-1:]), "").count("diverged") == 1


def test_the_plot_shows_every_course_in_four_panels(tmp_path: Path):
    table = standings([*COURSES, course("plain", 16, 1.0, [0.5, 0.6])])
    figure = plot_contest(table)
    assert len(figure.data) == 4 * 4  # four standings
    assert {trace.xaxis for trace in figure.data} == {"x", "x2", "x3", "x4"}
    left, right, below = (figure.layout[name].domain for name in ("xaxis", "xaxis2", "yaxis3"))
    assert left[1] < right[0] and below[1] < figure.layout.yaxis.domain[0]  # no panel lies on another
    assert sum(bool(trace.visible) for trace in figure.data) == 4  # the larger size
    score_over_seconds = next(trace for trace in figure.data if trace.xaxis == "x4" and trace.name.startswith("clever"))
    assert list(score_over_seconds.x) == pytest.approx([3.0, 6.0]) and list(score_over_seconds.y) == pytest.approx([0.30, 0.405])
    assert [button.label for button in figure.layout.updatemenus[0].buttons] == ["8 dimensions", "16 dimensions"]
    write_plot(table, tmp_path / "contest.html")
    page = (tmp_path / "contest.html").read_text(encoding="utf-8")
    assert "clever (0.05)" in page and "seconds of training" in page
