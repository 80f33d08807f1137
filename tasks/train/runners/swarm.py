"""Supervises learner processes: assigns epochs, polls their progress, and replaces killed learners.

The supervisor copies the parameters to shared memory before an epoch. It copies them back for each checkpoint
and after the epoch.
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

from storage.tables import Shared
from tasks.loading.loader import BatchLoader
from tasks.train.runners import Hogwild, learner
from tasks.train.runners.fence import fence
from tasks.train.step import Trainer
from tasks.train.tables import MappedTable

# Number of rounds that learners may start after the last round that the fastest learner has finished. A
# checkpoint waits until all learners have finished the rounds that they may start.
MAX_LEAD = 1024
POLL_SECONDS = 0.002  # time between two polls of the learners
MAX_KILLS = 20  # training fails if a learner is killed so many times without a finished round in between


class Swarm:
    """Runs the learner processes of a training run.

    Args:
        runner: Number of learners, and the interval at which they exchange dense parameters.
        trainer: Trainer whose parameters are trained.
        folder: Folder of the Corpus.
        title_ids: Ids (rows in the corpus) of the training titles, int64 (titles,).
        loader: Loader of all batches.
    """

    def __init__(
        self,
        runner: Hogwild,
        trainer: Trainer,
        folder: Path,
        title_ids: np.ndarray,
        loader: BatchLoader,
    ) -> None:
        self._learners, self._replaced_learners = runner.learners, 0
        self._trainer, self._folder, self._title_ids, self._loader = trainer, folder, title_ids, loader
        self.shared: Shared | None = None
        self._processes: list[BaseProcess] = []
        # For each learner: finished rounds when it was last killed, and number of kills since its last round.
        self._kills = [(0, 0)] * self._learners

    @property
    def pids(self) -> list[int | None]:
        """Process ids of the learners."""
        return [process.pid for process in self._processes]

    def run_epoch(
        self, epoch: int, first_batch: int, batch_count: int, save_seconds: float
    ) -> Iterator[tuple[list[float], dict[str, float]]]:
        """Trains on the batches of an epoch, starting with batch ``first_batch`` of ``batch_count``.

        The parameters are copied to the trainer every ``save_seconds`` seconds and at the end of the epoch.

        Yields:
            The losses of the batches since the previous yield, and metrics of the epoch so far, by name.
        """
        shared = self._assign_epoch(epoch, first_batch, batch_count)
        control, marks = shared["control"].numpy(), shared["marks"].numpy()
        round_count, steps = -(-(batch_count - first_batch) // self._learners), self._trainer.steps
        max_lead, saved_at = MAX_LEAD if save_seconds else 1, time.monotonic()
        max_rounds = yielded_batches = 0
        while True:
            finished_rounds = marks[:, learner.FINISHED_ROUNDS].copy()  # of each learner
            failed_batch = int(marks[:, learner.FAILED_BATCH].max())
            fence()
            must_save = max_rounds and time.monotonic() - saved_at >= save_seconds
            if finished_rounds.min() == max_rounds and (max_rounds == round_count or must_save):
                finished_batches = min(max_rounds * self._learners, batch_count - first_batch)
                end_batch = first_batch + finished_batches
                if len(wrong_batches := (shared["claimed"][first_batch:end_batch] != 1).nonzero()):
                    raise RuntimeError(
                        f"{len(wrong_batches)} batches of epoch {epoch + 1} were lost or used twice, "
                        f"the first is {first_batch + int(wrong_batches[0])}; resume the run, which "
                        "continues from its last checkpoint"
                    )
                self._trainer.restore(shared.__getitem__)
                self._trainer.steps, saved_at = steps + finished_batches, time.monotonic()
                losses = shared["losses"][first_batch + yielded_batches : end_batch].tolist()
                yield losses, self._epoch_metrics(marks, finished_batches)
                yielded_batches = finished_batches
                if max_rounds == round_count:
                    return
            if max_rounds == finished_rounds.min() or time.monotonic() - saved_at < save_seconds:
                max_rounds = min(round_count, int(finished_rounds.max()) + max_lead)
                fence()
                control[learner.MAX_ROUNDS] = max_rounds
            multiprocessing.connection.wait([process.sentinel for process in self._processes], POLL_SECONDS)
            self._replace_killed(marks)
            if failed_batch:
                self._raise_non_finite(shared, epoch, failed_batch - 1)

    def close(self) -> None:
        """Stops the learner processes."""
        if self.shared is not None:
            self.shared["control"][learner.STOP] = 1
        for process in self._processes:
            process.join(2.0)
            process.kill()
            process.join()
        self._processes, self.shared = [], None

    def _assign_epoch(self, epoch: int, first_batch: int, batch_count: int) -> Shared:
        """Copies the parameters to shared memory and assigns an epoch. The first call starts the learners."""
        shared = self.shared = self.shared or self._allocate()
        for name, section in self._trainer.sections().items():
            section.copy_to(shared[name])
        control, last_assignment = shared["control"], int(shared["control"][learner.ASSIGNMENT])
        control[learner.ASSIGNMENT] = 0
        fence()
        shared["marks"].zero_()
        shared["claimed"].zero_()
        control[learner.EPOCH], control[learner.FIRST_BATCH] = epoch, first_batch
        control[learner.BATCH_COUNT] = batch_count
        control[learner.STEPS_BEFORE], control[learner.MAX_ROUNDS] = self._trainer.steps, 0
        self._replaced_learners = 0
        fence()
        control[learner.ASSIGNMENT] = last_assignment + 1
        self._kills = [(0, 0)] * self._learners
        self._processes = self._processes or [self._start(number) for number in range(self._learners)]
        return shared

    def _allocate(self) -> Shared:
        """Allocates the shared memory of parameters, optimizer state, ``control`` and ``marks``."""
        sections, title_count, words = self._trainer.sections(), len(self._title_ids), learner.WORDS
        shapes = {name: (section.shape, section.dtype) for name, section in sections.items()}
        shapes |= {"control": ((words,), torch.int64), "marks": ((self._learners, words), torch.int64)}
        shapes |= {"titles": ((title_count,), torch.int64)}
        # The number of batches is at most the number of titles.
        shapes |= {"losses": ((title_count,), torch.float64), "claimed": ((title_count,), torch.uint8)}
        table, folder = self._trainer.settings.table, None
        if isinstance(table, MappedTable):
            folder = Path(table.folder or tempfile.gettempdir())
        shared = Shared(shapes, folder)
        shared["titles"].copy_(torch.from_numpy(self._title_ids))
        return shared

    def _start(self, number: int) -> BaseProcess:
        """Starts the process of the learner with this number."""
        context = multiprocessing.get_context("forkserver")  # a forked child of a Prefect task crashes
        context.set_forkserver_preload(["numba", learner.__name__])  # imported once for all learners
        arguments = self.shared, number, self._folder, self._trainer.settings
        for _ in range(MAX_KILLS):
            process = context.Process(target=learner.learn, args=arguments, name=f"learner {number}")
            with contextlib.suppress(BrokenPipeError, EOFError):  # raised if it is killed while it starts
                process.start()
                return process
        raise RuntimeError(
            f"learner {number} was killed {MAX_KILLS} times at its start; check that memory suffices"
        )

    def _replace_killed(self, marks: np.ndarray) -> None:
        """Starts a replacement for each learner that was killed.

        Raises:
            RuntimeError: A learner failed, or was killed more than MAX_KILLS times without a finished round.
        """
        for number, process in enumerate(self._processes):
            if (exit_code := process.exitcode) is None:
                continue
            if exit_code >= 0:
                raise RuntimeError(f"learner {number} ended with exit code {exit_code}; see its output")
            rounds_before, kills = self._kills[number]
            finished_rounds = int(marks[number, learner.FINISHED_ROUNDS])
            kills = kills + 1 if finished_rounds == rounds_before else 1
            self._kills[number] = finished_rounds, kills
            if kills > MAX_KILLS:
                raise RuntimeError(
                    f"learner {number} was killed {kills} times without a finished round; check that "
                    "memory suffices, or reduce train.runner.learners"
                )
            self._replaced_learners += 1
            self._processes[number] = self._start(number)

    def _raise_non_finite(self, shared: Shared, epoch: int, number: int) -> None:
        """Repeats the step of batch ``number`` in this process, to name the non-finite gradient.

        Raises:
            NonFiniteGradient: A gradient of the step is not finite.
            ArithmeticError: All gradients are finite when the step is repeated.
        """
        self._trainer.restore(shared.__getitem__)
        self._trainer.step(next(self._loader.epoch(epoch, number)[1]), 1.0)
        raise ArithmeticError(
            f"a gradient of batch {number} was not finite, but is finite if the step is repeated; lower "
            "train.optimizer.learning_rate"
        )

    def _epoch_metrics(self, marks: np.ndarray, steps: int) -> dict[str, float]:
        """Returns the metrics of an epoch: staleness, replaced learners, interrupted batches, and titles."""
        metrics = {
            "staleness": marks[:, learner.STALENESS_SUM].sum() / max(1, steps),
            "staleness_max": marks[:, learner.MAX_STALENESS].max(),
            "learners_replaced": self._replaced_learners,
            "batches_cut_off": marks[:, learner.INTERRUPTED_BATCHES].sum(),
            "shown": marks[:, learner.TRAINED_TITLES].sum(),
        }
        return {name: float(value) for name, value in metrics.items()}
