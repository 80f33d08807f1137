"""The learning-rate range test: its suggestion on curves by hand, and the test on the toy world."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tasks.train.tuning.entries import entries
from tasks.train.tuning.plot import plot_range_tests
from tasks.train.tuning.range_test import range_table_markdown, range_test, suggest_rate
from tests.worlds import TRAINING


def test_the_steepest_fall_is_suggested_and_what_lies_behind_the_lowest_loss_does_not_count() -> None:
    rates = [10.0**power for power in range(-4, 3)]
    assert suggest_rate(rates, [1.0, 1.0, 0.9, 0.5, 0.1, 0.05, 9.0]) == 10.0**-1
    assert suggest_rate(rates, [1.0, 0.9, 0.8, 5.0, 9.0, 1.0, 0.81]) in (10.0**-4, 10.0**-3)
    assert suggest_rate(rates[:2], [1.0, 2.0]) == rates[0]


def test_rates_rise_exponentially_around_the_own_rate(toy_corpus: Path) -> None:
    settings = replace(TRAINING, workers=0, objective=replace(TRAINING.objective, packs=16))
    tests = [
        range_test(toy_corpus, entry.for_scoring(8, 0.2)) for entry in entries(settings, ("adam", "sgd"))
    ]
    for test in tests:
        assert test.rates[0] == pytest.approx(test.rate / 100) and test.rates[0] < test.suggested
        assert len(test.rates) == len(test.losses) > 4 and test.suggested in test.rates
        assert np.allclose(np.diff(np.log(test.rates), 2), 0)
    figure = plot_range_tests(tests)
    assert len(figure.data) == 4 and figure.layout.xaxis.type == "log"
    assert len(range_table_markdown(tests).splitlines()) == 4


def test_a_rate_that_breaks_it_ends_the_test(toy_corpus: Path) -> None:
    (entry,) = entries(replace(TRAINING, workers=0), ("sgd",))
    optimizer = replace(entry.settings.optimizer, learning_rate=1e36)
    broken = range_test(toy_corpus, replace(entry, settings=replace(entry.settings, optimizer=optimizer)))
    assert np.isfinite(broken.losses).all()
