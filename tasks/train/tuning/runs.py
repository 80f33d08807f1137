"""Runs a training with one optimizer, learning rate and vector size, to compare it with others.

All runs train on the same batches, and runs with the same vector size start from the same rows. The seconds
of a run are the time of its steps: CPU time on a CPU, so that other processes do not count, and wall-clock
time on a GPU.
"""

import math
import time
from dataclasses import dataclass
from pathlib import Path

from tasks.train.checkpoint import Checkpointer, MemoryCheckpointer
from tasks.train.loop import Diverged, Training
from tasks.train.tuning.entries import Candidate


@dataclass(frozen=True)
class EpochMetrics:
    """Metrics of a tuning run after an epoch."""

    step: int  # number of steps so far
    seconds: float  # time of the steps so far
    loss: float  # mean loss of the epoch
    score: float  # tuning score


@dataclass(frozen=True)
class TuningRun:
    """Result of one training in a comparison of optimizers."""

    name: str  # name of the optimizer
    size: int  # number of dimensions of the vectors
    factor: float  # factor on the default learning rate of the optimizer
    rate: float  # learning rate; for YellowFin, the factor on the learning rate that it computes
    titles: int  # number of titles in the tuning set
    state: float  # size of the optimizer state, divided by the size of the rows
    marks: tuple[EpochMetrics, ...]  # metrics of each epoch
    trouble: str  # reason why the run ended early; "" if it did not

    @property
    def score(self) -> float:
        """Tuning score after the last epoch; 0 if the run ended early."""
        return self.marks[-1].score if self.marks and not self.trouble else 0.0


def run_training(corpus: Path, candidate: Candidate, factor: float) -> TuningRun:
    """Trains a candidate, with its learning rate multiplied by ``factor``, and returns the metrics.

    Args:
        corpus: Folder of a Corpus.
        candidate: Optimizer and settings, from ``Candidate.for_scoring``.
        factor: Factor on the default learning rate of the optimizer.
    """
    settings = candidate.scale_rate(factor)
    training, epoch_metrics, trouble = _TimedTraining(corpus, settings), [], ""
    try:
        for progress in training.run():
            if metrics := progress.metrics:
                steps, seconds = training.trainer.steps, training.seconds
                epoch_metrics.append(EpochMetrics(steps, seconds, metrics["loss"], metrics["tuning_score"]))
            elif progress.step < progress.total:
                trouble = progress.note
    except Diverged as error:
        trouble = str(error)
    section_sizes = {name: math.prod(section.shape) for name, section in training.table.sections().items()}
    return TuningRun(
        name=candidate.name,
        size=settings.dim,
        factor=factor,
        rate=candidate.rate * factor,
        titles=len(training.tuning_set.validation),
        state=sum(section_sizes.values()) / section_sizes["rows"] - 1,
        marks=tuple(epoch_metrics),
        trouble=trouble,
    )


class _TimedTraining(Training):
    """Training that measures the time of its steps in seconds."""

    seconds = 0.0

    def _train_epoch(self, checkpointer: Checkpointer | MemoryCheckpointer) -> int:
        clock = time.perf_counter if self.trainer.device.type == "cuda" else time.process_time
        started = clock()
        title_count = super()._train_epoch(checkpointer)
        self.seconds += clock() - started
        return title_count
