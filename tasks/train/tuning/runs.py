"""Tuning runs: one optimizer at one size with one learning rate. All see the same batches, and those of one
size begin at the same rows. Seconds are those of the steps: processor time on a CPU, so that other work on
the machine does not count, wall clock on a GPU.
"""

import math
import time
import typing
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tasks.form import configurable, setting
from tasks.optimizers import Momentum, Optimizer
from tasks.optimizers.tuners import NoTuner, YellowFin
from tasks.train.checkpoint import Checkpointer, MemoryCheckpointer
from tasks.train.loop import Diverged, Training
from tasks.train.settings import TrainSettings


class UnknownOptimizer(ValueError):
    """No optimizer has that name."""


@configurable
class TuningSettings:
    """Which optimizers are compared, at which sizes and learning rates."""

    optimizers: tuple[str, ...] = setting((), "Names of optimizers, and yellowfin; empty: all of them")
    sizes: tuple[int, ...] = setting((32, 128, 256), "Dimensions of the vectors, one comparison each")
    rates: tuple[float, ...] = setting((0.3, 1.0, 3.0), "Factors on each optimizer's own learning rate")
    share: float = setting(0.1, "Share of the first words whose titles are set aside", gt=0, lt=0.5)

    def __post_init__(self) -> None:
        if wrong := [size for size in self.sizes if not 2 <= size <= 4096]:  # as in train.dim
            raise ValueError(f"sizes: {wrong[0]} is not a number of dimensions from 2 to 4096")
        if wrong := [rate for rate in self.rates if not 0 < rate < math.inf]:
            raise ValueError(f"rates: {wrong[0]} is not a factor above 0")


@dataclass(frozen=True)
class Entry:
    """An optimizer that takes part, with the settings of its training at its own learning rate."""

    name: str
    settings: TrainSettings

    def at(self, factor: float) -> TrainSettings:
        """The settings with the learning rate (YellowFin: the rate that it finds) times a factor."""
        tuner, optimizer = self.settings.tuner, self.settings.optimizer
        if isinstance(tuner, YellowFin):
            return replace(self.settings, tuner=replace(tuner, rate_factor=tuner.rate_factor * factor))
        rate = optimizer.learning_rate * factor
        return replace(self.settings, optimizer=replace(optimizer, learning_rate=rate))


@dataclass(frozen=True)
class Mark:
    """State of a run after an epoch."""

    step: int
    seconds: float
    loss: float
    score: float


@dataclass(frozen=True)
class TuningRun:
    """One training, from its first epoch to its last."""

    name: str  # of the entry
    size: int  # dimensions
    factor: float  # on the entry's own learning rate
    rate: float  # the learning rate; of YellowFin the factor on the one that it finds
    titles: int  # set aside to score on
    state: float  # numbers of optimizer state for each number of a row
    marks: tuple[Mark, ...]  # one for each epoch
    trouble: str  # why it ended early; "" where it did not

    @property
    def score(self) -> float:
        """The last tuning score; 0 where the run failed."""
        return self.marks[-1].score if self.marks and not self.trouble else 0.0


def entries(settings: TrainSettings, tuning: TuningSettings) -> list[Entry]:
    """Every optimizer with its defaults (the preset's as it is set there), and YellowFin."""
    own = settings.optimizer
    optimizers = [own if isinstance(own, kind) else kind() for kind in typing.get_args(Optimizer)]
    known = [Entry(each.name, replace(settings, optimizer=each, tuner=NoTuner())) for each in optimizers]
    yellowfin = YellowFin(rate_factor=30.0)  # 1 was far too small: docs/LOG.md, first comparison
    known.append(Entry("yellowfin", replace(settings, optimizer=Momentum(), tuner=yellowfin)))
    names = [entry.name for entry in known]
    if unknown := ", ".join(sorted(set(tuning.optimizers).difference(names))):
        raise UnknownOptimizer(f"no optimizer is called {unknown}; known are {', '.join(names)}")
    return [entry for entry in known if entry.name in (tuning.optimizers or names)]


def run_trainings(corpus: Path, entry: Entry, size: int, tuning: TuningSettings) -> Iterator[TuningRun]:
    """Trains an entry at one size with each rate; ``corpus`` is the folder of a Corpus."""
    for factor in tuning.rates:
        settings = entry.at(factor)
        settings = replace(settings, dim=size, tuning_share=tuning.share, save_seconds=1e9)
        settings = replace(settings, patience=settings.epochs)  # no early end
        training, marks, trouble = _TimedTraining(corpus, settings), [], ""
        try:
            for progress in training.run():
                if got := progress.metrics:
                    steps, seconds = training.learner.steps, training.seconds
                    marks.append(Mark(steps, seconds, got["loss"], got["tuning_score"]))
                elif progress.step < progress.total:
                    trouble = progress.note
        except Diverged as error:
            trouble = str(error)
        numbers = {name: math.prod(part.shape) for name, part in training.table.sections().items()}
        state, aside = sum(numbers.values()) / numbers["rows"] - 1, len(training.tuning_set.aside)
        rate = getattr(settings.tuner, "rate_factor", settings.optimizer.learning_rate)
        yield TuningRun(entry.name, size, factor, rate, aside, state, tuple(marks), trouble)


class _TimedTraining(Training):
    seconds = 0.0

    def _one_epoch(self, checkpointer: Checkpointer | MemoryCheckpointer) -> int:
        clock = time.perf_counter if self.learner.device.type == "cuda" else time.process_time
        started = clock()
        shown = super()._one_epoch(checkpointer)
        self.seconds += clock() - started
        return shown
