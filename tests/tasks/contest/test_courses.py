"""Rules side by side on the toy world: same batches, same start, what is watched."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch

from tasks.contest.courses import Course, UnknownRule, entries, run_courses
from tasks.contest.settings import ContestSettings
from tasks.preprocess.corpus import open_corpus
from tasks.train.rules import Adam, Momentum, RowwiseAdagrad, Rule
from tasks.train.step import Learner
from tasks.train.tuners import YellowFin
from tests.worlds import TRAINING

SHORT = replace(TRAINING, epochs=2)


def courses(corpus: Path, name: str, **options) -> list[Course]:
    contest = ContestSettings(rules=(name,), share=0.2, **options)
    (entry,) = entries(SHORT, contest)
    return list(run_courses(corpus, entry, 8, contest))


def test_everybody_takes_part_by_default():
    found = {entry.name: entry.settings for entry in entries(SHORT, ContestSettings())}
    assert len(found) == len(get_args(Rule)) + 1
    assert all(settings.rule.name == name for name, settings in found.items() if name != "yellowfin")
    assert isinstance(found["yellowfin"].rule, Momentum) and isinstance(found["yellowfin"].tuner, YellowFin)


def test_the_presets_own_rule_takes_part_as_it_is_set():
    settings = replace(SHORT, rule=RowwiseAdagrad(learning_rate=0.5))
    (entry,) = entries(settings, ContestSettings(rules=("rowwise_adagrad",)))
    assert entry.settings == settings and entry.at(2.0).rule.learning_rate == 1.0


def test_an_unknown_rule_is_named_with_the_known_ones():
    with pytest.raises(UnknownRule, match=r"no rule is called adamm; known are sgd, .*adam, .*yellowfin"):
        entries(SHORT, ContestSettings(rules=("adam", "adamm")))


def test_all_courses_see_the_same_batches_and_begin_at_the_same_rows(toy_corpus: Path, monkeypatch: pytest.MonkeyPatch):
    seen: dict[str, list[torch.Tensor]] = {}
    step = Learner.step

    def watched(self, batch, factor):
        key = f"{self.settings.rule.name} {self.settings.rule.learning_rate}"
        if key not in seen:
            seen[key] = [self.table.gather(torch.arange(len(self.table)))[0].clone()]
        seen[key].append(batch.bags.ids)
        return step(self, batch, factor)

    monkeypatch.setattr(Learner, "step", watched)
    for name in ("adam", "sgd"):
        courses(toy_corpus, name, rates=(0.5, 1.0))
    first, *others = seen.values()
    assert len(seen) == 4 and len(first) > 4
    assert all(len(first) == len(other) and all(torch.equal(one, two) for one, two in zip(first, other, strict=True)) for other in others)


def test_a_course_is_marked_after_each_epoch(toy_corpus: Path):
    small, large = courses(toy_corpus, "adam", rates=(0.01, 1.0))
    assert (small.rate, large.rate, large.factor) == (pytest.approx(Adam().learning_rate / 100), Adam().learning_rate, 1.0)
    assert [mark.step for mark in large.marks] == [large.marks[0].step, 2 * large.marks[0].step]
    assert 0 < large.marks[0].seconds < large.marks[1].seconds
    assert large.marks[1].loss < large.marks[0].loss and 0 <= large.marks[0].score <= 1 and large.trouble == ""
    assert large.score > small.score and large.state == 2
    assert 10 < large.titles < len(open_corpus(toy_corpus).training) / 2


def test_state_is_counted_a_number_of_a_row(toy_corpus: Path):
    assert [courses(toy_corpus, name, rates=(1.0,))[0].state for name in ("sgd", "rowwise_adagrad", "smorms3")] == [0, 1 / 8, 3]


def test_a_rate_that_breaks_it_is_trouble_not_the_end(toy_corpus: Path):
    broken, sound = courses(toy_corpus, "sgd", rates=(1e36, 0.1))
    assert broken.trouble and broken.score == 0 and sound.score > 0
