"""One rule trained at one size with one learning rate, watched: loss and score over steps and over seconds.

All courses of a contest see the same titles in the same batches, and begin at the same rows where they have the same
size: chance belongs to the seed. The score is the one that ends a training early: the mean of k-NN accuracy and
precision@10 of training titles set aside by their first word. The scores' own held-out sets are not looked at.

Seconds are those of the steps, without scoring: processor time on a CPU, so that other work on the machine does not
count, wall clock on a GPU.
"""

from __future__ import annotations

import math
import time
import typing
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tasks.contest.settings import ContestSettings
from tasks.preprocess.corpus import open_corpus
from tasks.train.checkpoint import Kept
from tasks.train.loop import Diverged, Training
from tasks.train.rules import Momentum, Rule
from tasks.train.settings import TrainSettings
from tasks.train.tuners import AsSet, YellowFin


class UnknownRule(ValueError):
    """No rule has that name."""


@dataclass(frozen=True)
class Entry:
    """Who takes part: a rule, and what tunes it.

    Attributes:
        name: Shown.
        settings: Of its training, at the rule's own learning rate.
    """

    name: str
    settings: TrainSettings

    def at(self, factor: float) -> TrainSettings:
        """The settings with the learning rate times a factor; of a tuner, with the rate that it finds times the factor."""
        tuner, rule = self.settings.tuner, self.settings.rule
        if isinstance(tuner, YellowFin):
            return replace(self.settings, tuner=replace(tuner, rate_factor=tuner.rate_factor * factor))
        return replace(self.settings, rule=replace(rule, learning_rate=rule.learning_rate * factor))


@dataclass(frozen=True)
class Mark:
    """How far a course had come after an epoch."""

    step: int
    seconds: float
    loss: float
    score: float


@dataclass(frozen=True)
class Course:
    """One training, from its first epoch to its last.

    Attributes:
        name: Of the entry.
        size: Dimensions.
        factor: On the rule's own learning rate.
        rate: The learning rate; of YellowFin the factor on the one that it finds.
        titles: How many are set aside to score on.
        state: Numbers of state that a number of a row needs.
        marks: One an epoch, the last at the end.
        trouble: Why it ended early; "" where it did not.
    """

    name: str
    size: int
    factor: float
    rate: float
    titles: int
    state: float
    marks: tuple[Mark, ...]
    trouble: str

    @property
    def score(self) -> float:
        """Where it ended; 0 where it went nowhere."""
        return self.marks[-1].score if self.marks and not self.trouble else 0.0


def entries(settings: TrainSettings, contest: ContestSettings) -> list[Entry]:
    """All that take part: every rule with its defaults (the preset's own as it is set there), and YellowFin.

    Raises:
        UnknownRule: A name that is no rule's.
    """
    rules: list[Rule] = [settings.rule if isinstance(settings.rule, kind) else kind() for kind in typing.get_args(Rule)]
    known = [Entry(rule.name, replace(settings, rule=rule, tuner=AsSet())) for rule in rules]
    known.append(Entry("yellowfin", replace(settings, rule=Momentum(), tuner=YellowFin(rate_factor=30.0))))  # found 1 far too small in docs/LOG.md's first comparison
    unknown = set(contest.rules) - {entry.name for entry in known}
    if unknown:
        raise UnknownRule(f"no rule is called {', '.join(sorted(unknown))}; known are {', '.join(entry.name for entry in known)}")
    return [entry for entry in known if not contest.rules or entry.name in contest.rules]


def run_courses(corpus_folder: Path, entry: Entry, size: int, contest: ContestSettings) -> Iterator[Course]:
    """Trains an entry at one size with each rate.

    Args:
        corpus_folder: Of a Corpus.
        entry: Who.
        size: Dimensions.
        contest: Rates, and the share that is set aside.
    """
    for factor in contest.rates:
        settings = entry.at(factor)
        # Nothing ends it early, and no checkpoint falls within an epoch.
        settings = replace(settings, dim=size, patience=settings.epochs, tuning_share=contest.share, save_seconds=1e9)
        training = _Watched(corpus_folder, settings)
        marks, trouble = [], ""
        try:
            for progress in training.run():
                if "loss" in progress.metrics:
                    marks.append(Mark(training.learner.steps, training.seconds, progress.metrics["loss"], progress.metrics["tuning_score"]))
                elif progress.step < progress.total:
                    trouble = progress.note
        except Diverged as error:
            trouble = str(error)
        numbers = {name: math.prod(part.shape) for name, part in training.table.parts().items()}
        rate = settings.tuner.rate_factor if isinstance(settings.tuner, YellowFin) else settings.rule.learning_rate
        titles = len(open_corpus(corpus_folder).training) - training.titles_per_epoch
        yield Course(entry.name, size, factor, rate, titles, sum(numbers.values()) / numbers["rows"] - 1, tuple(marks), trouble)


class _Watched(Training):
    """A training that knows how long its steps took."""

    seconds = 0.0

    def _one_epoch(self, kept: Kept) -> int:
        clock = time.perf_counter if self.learner.device.type == "cuda" else time.process_time
        started = clock()
        shown = super()._one_epoch(kept)
        self.seconds += clock() - started
        return shown
