"""Tuning runs: one optimizer at one size with one learning rate. All see the same batches, and those of one
size begin at the same rows. Seconds are those of the steps: processor time on a CPU, so that other work on
the machine does not count, wall clock on a GPU.
"""

import math
import time
from dataclasses import dataclass
from pathlib import Path

from tasks.train.checkpoint import Checkpointer, MemoryCheckpointer
from tasks.train.loop import Diverged, Training
from tasks.train.tuning.entries import Entry


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


def run_training(corpus: Path, entry: Entry, factor: float) -> TuningRun:
    """Trains an entry (``Entry.scored``) at a rate; ``corpus`` is the folder of a Corpus."""
    settings = entry.at(factor)
    training, marks, trouble = _TimedTraining(corpus, settings), [], ""
    try:
        for progress in training.run():
            if got := progress.metrics:
                steps, seconds = training.trainer.steps, training.seconds
                marks.append(Mark(steps, seconds, got["loss"], got["tuning_score"]))
            elif progress.step < progress.total:
                trouble = progress.note
    except Diverged as error:
        trouble = str(error)
    numbers = {name: math.prod(part.shape) for name, part in training.table.sections().items()}
    state, aside = sum(numbers.values()) / numbers["rows"] - 1, len(training.tuning_set.validation)
    rate = entry.rate * factor
    return TuningRun(entry.name, settings.dim, factor, rate, aside, state, tuple(marks), trouble)


class _TimedTraining(Training):
    seconds = 0.0

    def _one_epoch(self, checkpointer: Checkpointer | MemoryCheckpointer) -> int:
        clock = time.perf_counter if self.trainer.device.type == "cuda" else time.process_time
        started = clock()
        shown = super()._one_epoch(checkpointer)
        self.seconds += clock() - started
        return shown
