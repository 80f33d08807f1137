"""Tuning runs on the toy world: batches, initial rows and metrics."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch

from storage.formats.corpus import open_corpus
from tasks.optimizers import Adam, Momentum, Optimizer, RowwiseAdagrad
from tasks.optimizers.tuners import YellowFin
from tasks.train.step import Trainer
from tasks.train.tuning.entries import UnknownOptimizer, list_candidates
from tasks.train.tuning.runs import TuningRun, run_training
from tests.worlds import TRAINING

SHORT = replace(TRAINING, epochs=2)


def tuning_runs(corpus: Path, name: str, rates: tuple[float, ...]) -> list[TuningRun]:
    (candidate,) = list_candidates(SHORT, (name,))
    return [run_training(corpus, candidate.for_scoring(8, 0.2), factor) for factor in rates]


def test_all_optimizers_are_candidates_by_default():
    found = {candidate.name: candidate.settings for candidate in list_candidates(SHORT)}
    assert len(found) == len(get_args(Optimizer)) + 1
    assert all(settings.optimizer.name == name for name, settings in found.items() if name != "yellowfin")
    assert isinstance(found["yellowfin"].optimizer, Momentum) and isinstance(
        found["yellowfin"].tuner, YellowFin
    )


def test_the_optimizer_of_the_preset_keeps_its_settings():
    settings = replace(SHORT, optimizer=RowwiseAdagrad(learning_rate=0.5))
    (candidate,) = list_candidates(settings, ("rowwise_adagrad",))
    assert candidate.settings == settings and candidate.scale_rate(2.0).optimizer.learning_rate == 1.0


def test_an_unknown_optimizer_is_named_with_the_known_ones():
    with pytest.raises(
        UnknownOptimizer, match=r"no optimizer is called adamm; the optimizers are sgd, .*adam, .*yellowfin"
    ):
        list_candidates(SHORT, ("adam", "adamm"))


def test_all_runs_see_the_same_batches_and_begin_at_the_same_rows(
    toy_corpus: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: dict[str, list[torch.Tensor]] = {}
    step = Trainer.step

    def watched(self, batch, factor):
        key = f"{self.settings.optimizer.name} {self.settings.optimizer.learning_rate}"
        if key not in seen:
            seen[key] = [self.table.gather(torch.arange(len(self.table)))[0].clone()]
        seen[key].append(batch.bags.ids)
        return step(self, batch, factor)

    monkeypatch.setattr(Trainer, "step", watched)
    for name in ("adam", "sgd"):
        tuning_runs(toy_corpus, name, rates=(0.5, 1.0))
    first, *others = seen.values()
    assert len(seen) == 4 and len(first) > 4
    assert all(
        len(first) == len(other) and all(torch.equal(one, two) for one, two in zip(first, other, strict=True))
        for other in others
    )


def test_a_run_is_marked_after_each_epoch(toy_corpus: Path):
    small, large = tuning_runs(toy_corpus, "adam", rates=(0.01, 1.0))
    assert (small.rate, large.rate, large.factor) == (
        pytest.approx(Adam().learning_rate / 100),
        Adam().learning_rate,
        1.0,
    )
    assert [mark.step for mark in large.marks] == [large.marks[0].step, 2 * large.marks[0].step]
    assert 0 < large.marks[0].seconds < large.marks[1].seconds
    assert (
        large.marks[1].loss < large.marks[0].loss and 0 <= large.marks[0].score <= 1 and large.trouble == ""
    )
    assert large.score >= small.score and large.marks[1].loss < small.marks[1].loss and large.state == 2
    assert 10 < large.titles < len(open_corpus(toy_corpus).training) / 2


def test_state_is_counted_per_component_of_a_row(toy_corpus: Path):
    assert [
        tuning_runs(toy_corpus, name, rates=(1.0,))[0].state for name in ("sgd", "rowwise_adagrad", "smorms3")
    ] == [0, 1 / 8, 3]


def test_a_diverging_run_does_not_end_the_comparison(toy_corpus: Path):
    broken, sound = tuning_runs(toy_corpus, "sgd", rates=(1e36, 0.1))
    assert broken.trouble and broken.score == 0 and sound.score > 0
