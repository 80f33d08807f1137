"""Learning rates over training, against values worked out by hand."""

from typing import get_args

import pytest

from tasks.optimizers.schedules import Constant, Cosine, Linear, Schedule, Step, warmed_up_factor


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (Constant(), [1, 1, 1, 1, 1]),
        (Linear(), [1, 0.75, 0.5, 0.25, 0]),
        (Linear(end_factor=0.2), [1, 0.8, 0.6, 0.4, 0.2]),
        (Step(step_size=0.5, gamma=0.1), [1, 1, 0.1, 0.1, 0.01]),
        (Step(step_size=0.25, gamma=0.5), [1, 0.5, 0.25, 0.125, 0.0625]),
        (Cosine(), [1, 0.8535533906, 0.5, 0.1464466094, 0]),
        (Cosine(eta_min=0.5), [1, 0.9267766953, 0.75, 0.5732233047, 0.5]),
        (Cosine(cycles=2), [1, 0.5, 1, 0.5, 1]),
    ],
    ids=str,
)
def test_factors_at_the_quarters(schedule: Schedule, expected: list[float]):
    at_the_end = (
        1 - 1e-12 if isinstance(schedule, Cosine) and schedule.cycles == 1 else 1
    )  # a whole cycle is the start of the next
    assert [schedule.factor(done) for done in (0, 0.25, 0.5, 0.75, at_the_end)] == pytest.approx(
        expected, abs=1e-9
    )


@pytest.mark.parametrize("every", [0.1, 0.2, 0.3, 1 / 3, 0.07])
def test_steps_fall_at_multiples_of_step_size(every: float):
    falls = int(1 / every)
    assert [
        Step(step_size=every, gamma=0.5).factor(number * every) for number in range(falls)
    ] == pytest.approx([0.5**number for number in range(falls)])


@pytest.mark.parametrize("kind", get_args(Schedule))
def test_no_factor_leaves_zero_to_one(kind: type):
    assert all(0 <= kind().factor(done / 1000) <= 1 for done in range(1000)) and kind().factor(0) == 1


def test_warm_up_is_linear_and_multiplies_the_schedule():
    ten_steps = [warmed_up_factor(Linear(), number / 10, (number + 1) / 10, 0.4) for number in range(10)]
    assert ten_steps == pytest.approx([0.25, 0.45, 0.6, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert warmed_up_factor(Linear(), 0.3, 0.4, 0.0) == Linear().factor(0.3)
