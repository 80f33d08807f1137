"""Supervises learner processes: assigns epochs, polls their progress, and replaces killed learners.

Parameters are copied to shared memory before an epoch, and back for each checkpoint and after the epoch.
"""

import contextlib
import multiprocessing
import multiprocessing.connection
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import torch

from storage.formats.corpus import OpenCorpus
from storage.tables import Shared
from tasks.loading.loader import BatchLoader
from tasks.train.runners import Hogwild
from tasks.train.runners.fence import fence
from tasks.train.runners.learner import (
    BATCHES,
    CUT_OFF,
    DONE,
    EPOCH,
    FAILED,
    FIRST,
    MAX_ROUNDS,
    MAX_STALE,
    RUN,
    SHOWN,
    STALE,
    STEPS,
    STOP,
    WORDS,
    learn,
)
from tasks.train.step import Trainer
from tasks.train.tables import MappedTable

MAX_LEAD = 1024  # rounds that learners may start beyond those finished by the fastest; delays checkpoints
POLL_SECONDS = 0.002  # time between two polls of the learners
MAX_KILLS = 20  # training fails after so many kills of a learner without a finished round


class Swarm:
    """Learner processes of a training run.

    Args:
        runner: Number of learners, and how they share rows.
        trainer: Trainer whose parameters are trained.
        folder: Folder of the Corpus.
        corpus: The opened Corpus.
        titles: Training titles, int64.
        loader: Loader of all batches.
    """

    def __init__(
        self,
        runner: Hogwild,
        trainer: Trainer,
        folder: Path,
        corpus: OpenCorpus,
        titles: np.ndarray,
        loader: BatchLoader,
    ) -> None:
        self.count, self.replaced, self._trainer, self._loader = runner.learners, 0, trainer, loader
        self._folder, self._corpus, self._titles = folder, corpus, titles
        self.shared: Shared | None = None
        self._processes: list[BaseProcess] = []
        # Per learner: finished rounds when it was last killed; number of kills since its last finished round.
        self._kills = [(0, 0)] * self.count

    @property
    def pids(self) -> list[int | None]:
        """Process ids of the learners."""
        return [process.pid for process in self._processes]

    def run_epoch(
        self, epoch: int, first: int, batches: int, save_seconds: float
    ) -> Iterator[tuple[list[float], dict[str, float]]]:
        """Runs the steps of an epoch with ``batches`` batches, starting with batch ``first``.

        Copies the parameters to the trainer every ``save_seconds`` and at the end of the epoch.

        Yields:
            The losses of the batches since the last yield, and metrics of the learners.
        """
        shared = self._begin(epoch, first, batches)
        control, marks = shared["control"].numpy(), shared["marks"].numpy()
        rounds, steps = -(-(batches - first) // self.count), self._trainer.steps
        max_lead, limit, yielded, saved_at = MAX_LEAD if save_seconds else 1, 0, 0, time.monotonic()
        while True:
            least_done, most_done = int(marks[:, DONE].min()), int(marks[:, DONE].max())
            failed_learner = int(marks[:, FAILED].max())
            fence()
            must_save = limit and time.monotonic() - saved_at >= save_seconds
            if least_done == limit and (limit == rounds or must_save):
                finished = min(limit * self.count, batches - first)
                if len(wrong_batches := (shared["claimed"][first : first + finished] != 1).nonzero()):
                    raise RuntimeError(
                        f"{len(wrong_batches)} batches of epoch {epoch + 1} were lost or used twice, "
                        f"the first is {first + int(wrong_batches[0])}; resume the run, which continues "
                        "from its last checkpoint"
                    )
                self._trainer.restore(shared.__getitem__)
                self._trainer.steps, saved_at = steps + finished, time.monotonic()
                losses = shared["losses"][first + yielded : first + finished].tolist()
                yield losses, self._epoch_metrics(marks, finished)
                yielded = finished
                if limit == rounds:
                    return
            if limit == least_done or time.monotonic() - saved_at < save_seconds:
                fence()
                control[MAX_ROUNDS] = limit = min(rounds, most_done + max_lead)
            multiprocessing.connection.wait([process.sentinel for process in self._processes], POLL_SECONDS)
            self._replace(marks)
            if failed_learner:
                self._raise_non_finite(shared, epoch, failed_learner - 1)

    def close(self) -> None:
        """Stops the learner processes."""
        if self.shared is not None:
            self.shared["control"][STOP] = 1
        for process in self._processes:
            process.join(2.0)
            process.kill()
            process.join()
        self._processes, self.shared = [], None

    def _begin(self, epoch: int, first: int, batches: int) -> Shared:
        """Copies parameters to shared memory and assigns an epoch. The first call starts the learners."""
        shared = self.shared = self.shared or self._allocate()
        for name, part in self._trainer.parts().items():
            part.copy_to(shared[name])
        control, run = shared["control"], int(shared["control"][RUN])
        control[RUN] = 0
        fence()
        shared["marks"].zero_()
        shared["claimed"].zero_()
        for word, value in ((EPOCH, epoch), (FIRST, first), (BATCHES, batches), (STEPS, self._trainer.steps)):
            control[word] = value
        control[MAX_ROUNDS], self.replaced = 0, 0
        fence()
        control[RUN] = run + 1
        self._kills = [(0, 0)] * self.count
        self._processes = self._processes or [self._start(number) for number in range(self.count)]
        return shared

    def _allocate(self) -> Shared:
        shapes = {name: (part.shape, part.dtype) for name, part in self._trainer.parts().items()}
        shapes |= {"control": ((WORDS,), torch.int64), "marks": ((self.count, WORDS), torch.int64)}
        titles, table, folder = len(self._titles), self._trainer.settings.table, None
        shapes |= {"titles": ((titles,), torch.int64)}
        shapes |= {"losses": ((titles,), torch.float64), "claimed": ((titles,), torch.uint8)}
        if isinstance(table, MappedTable):
            folder = Path(table.folder or tempfile.gettempdir())
        shared = Shared(shapes, folder)
        shared["titles"].copy_(torch.from_numpy(self._titles))
        return shared

    def _start(self, number: int) -> BaseProcess:
        context = multiprocessing.get_context("forkserver")  # a forked child of a Prefect task dies
        context.set_forkserver_preload(["numba", learn.__module__])  # imported once for all learners
        arguments = self.shared, number, self._folder, self._trainer.settings
        for _ in range(MAX_KILLS):
            process = context.Process(target=learn, args=arguments, name=f"learner {number}")
            with contextlib.suppress(BrokenPipeError, EOFError):  # killed before it read its arguments
                process.start()
                return process
        raise RuntimeError(f"learner {number} was killed {MAX_KILLS} times at its start; did memory run out?")

    def _replace(self, marks: np.ndarray) -> None:
        """Starts a replacement of each learner that was killed.

        Raises:
            RuntimeError: A learner failed, or was killed too often without a finished round.
        """
        for number, process in enumerate(self._processes):
            if (code := process.exitcode) is None:
                continue
            if code >= 0:
                raise RuntimeError(f"learner {number} ended with exit code {code}; see its output")
            done_steps, (previous, kills) = int(marks[number, DONE]), self._kills[number]
            self._kills[number] = done_steps, kills + 1 if done_steps == previous else 0
            if kills >= MAX_KILLS:
                raise RuntimeError(
                    f"learner {number} was killed {kills} times without a finished step; did memory run "
                    "out? Reduce train.runner.learners"
                )
            self.replaced += 1
            self._processes[number] = self._start(number)

    def _raise_non_finite(self, shared: Shared, epoch: int, number: int) -> None:
        """Repeats the step of batch ``number`` in this process, which raises the error.

        Raises:
            NonFiniteGradient: A gradient is not finite.
            ArithmeticError: All gradients are finite this time.
        """
        self._trainer.restore(shared.__getitem__)
        self._trainer.step(next(self._loader.epoch(epoch, number)[1]), 1.0)
        raise ArithmeticError(
            f"a gradient of batch {number} was not finite, but is when repeated; lower the learning rate"
        )

    def _epoch_metrics(self, marks: np.ndarray, steps: int) -> dict[str, float]:
        """Returns metrics of an epoch: staleness, replaced learners, interrupted batches, and titles."""
        mean_staleness, max_staleness = marks[:, STALE].sum() / max(1, steps), marks[:, MAX_STALE].max()
        metrics = {"staleness": mean_staleness, "staleness_max": max_staleness}
        metrics |= {"learners_replaced": self.replaced}
        metrics |= {"batches_cut_off": marks[:, CUT_OFF].sum(), "shown": marks[:, SHOWN].sum()}
        return {name: float(value) for name, value in metrics.items()}
