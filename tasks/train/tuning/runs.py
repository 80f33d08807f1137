"""Runs trainings of one optimizer with one learning rate and vector size, to compare them.

All runs see the same batches, and runs of one size start from the same rows. Seconds are those of the steps:
CPU time on a CPU, so that other processes do not count, and wall-clock time on a GPU.
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
    """The metrics of a tuning run after one of its epochs."""

    step: int
    seconds: float
    loss: float
    score: float


@dataclass(frozen=True)
class TuningRun:
    """Result of one training in a comparison of optimizers."""

    name: str  # name of the optimizer
    size: int  # dimensions of vectors
    factor: float  # factor on the default learning rate of the optimizer
    rate: float  # learning rate; for YellowFin, the factor on the rate that it computes
    titles: int  # titles in the tuning set
    state: float  # size of the optimizer state, divided by the size of the rows
    marks: tuple[Mark, ...]  # one per epoch
    trouble: str  # why the run ended early; "" if it did not

    @property
    def score(self) -> float:
        """Tuning score after the last epoch; 0 if the run failed."""
        return self.marks[-1].score if self.marks and not self.trouble else 0.0


def run_training(corpus: Path, entry: Entry, factor: float) -> TuningRun:
    """Trains a candidate (from ``Entry.for_scoring``) with its learning rate multiplied by ``factor``."""
    settings = entry.scale_rate(factor)
    training, marks, trouble = _TimedTraining(corpus, settings), [], ""
    try:
        for progress in training.run():
            if metrics := progress.metrics:
                steps, seconds = training.trainer.steps, training.seconds
                marks.append(Mark(steps, seconds, metrics["loss"], metrics["tuning_score"]))
            elif progress.step < progress.total:
                trouble = progress.note
    except Diverged as error:
        trouble = str(error)
    sizes = {name: math.prod(part.shape) for name, part in training.table.sections().items()}
    state, tuning_titles = sum(sizes.values()) / sizes["rows"] - 1, len(training.tuning_set.validation)
    rate = entry.rate * factor
    return TuningRun(entry.name, settings.dim, factor, rate, tuning_titles, state, tuple(marks), trouble)


class _TimedTraining(Training):
    seconds = 0.0

    def _train_epoch(self, checkpointer: Checkpointer | MemoryCheckpointer) -> int:
        clock = time.perf_counter if self.trainer.device.type == "cuda" else time.process_time
        started = clock()
        title_count = super()._train_epoch(checkpointer)
        self.seconds += clock() - started
        return title_count
