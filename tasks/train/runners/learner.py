"""Learner: one of n processes, each of which computes every n-th step of an epoch on shared rows.

Learners exchange no messages and use no locks. Each learner derives the batches of the epoch from the seed
and takes every n-th batch. The parent process gives orders in the shared array ``control``. A learner reports
in its row of the shared array ``marks``; if it is killed, its replacement resumes from this row. Each word of
these arrays has only one writer, and a memory fence (fence.py) ensures that a process that sees a changed
word also sees the data that was written before it. Writes to embedding rows are not ordered.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from storage.formats.corpus import open_corpus
from storage.tables import Shared
from tasks.encoder.bag import LAYER
from tasks.loading.loader import Batch
from tasks.optimizers.parameter_groups import ParameterGroups
from tasks.pool import worker_process
from tasks.train.batches import open_batches
from tasks.train.compiled_step import CompiledStep, max_title_tokens
from tasks.train.runners import Hogwild
from tasks.train.runners.fence import fence
from tasks.train.settings import TrainSettings

PARAMETERS = ["rows", "labels", LAYER]
# Words of ``control``: run number (0 while the parent writes), epoch, first batch, number of batches, steps
# before the first batch, number of rounds that learners may start, whether to stop. In one round, each
# learner computes one batch.
RUN, EPOCH, FIRST, BATCHES, STEPS, MAX_ROUNDS, STOP = range(7)
# Words of ``marks``: number of finished rounds; number, from 1, of a batch with a non-finite gradient; sum
# and maximum of the staleness (steps that other learners finish while this one computes a step); number of
# trained titles; number of batches that were interrupted because the learner was killed.
DONE, FAILED, STALE, MAX_STALE, SHOWN, CUT_OFF = range(6)
WORDS = 16  # 8-byte words per row, so that no two learners write to the same cache line
SPINS, POLL_SECONDS = 2000, 0.0005  # number of polls without sleep; sleep between later polls


def learn(shared: Shared, number: int, folder: Path, settings: TrainSettings) -> None:
    """Runs a learner until its parent process requests a stop or ends.

    Args:
        shared: Shared memory with parameters, control words and marks.
        number: Number of the learner, from 0.
        folder: Folder of the Corpus.
        settings: Settings of the training run.
    """
    with worker_process():
        torch.set_num_threads(settings.threads or 1)
        _Learner(shared, number, folder, settings).run()


class _Learner:
    """Computes the batches of one learner on shared rows, without waiting for other learners.

    A learner marks a batch as claimed before it updates rows. If it is killed after that, its replacement
    does not repeat the batch, although some rows may not have been updated.
    """

    def __init__(self, shared: Shared, number: int, folder: Path, settings: TrainSettings) -> None:
        self._shared, self._place, self._settings, corpus = shared, number, settings, open_corpus(folder)
        self._control, self._marks = shared["control"].numpy(), shared["marks"].numpy()
        self._learners, self._progress = len(self._marks), self._marks[number]
        self._losses, self._claimed = shared["losses"].numpy(), shared["claimed"].numpy()
        self._loader = open_batches(folder, corpus, settings, shared["titles"].numpy(), {}, workers=0)
        assert isinstance(settings.runner, Hogwild)
        self._interval, tensors = settings.runner.interval, shared.tensors
        dense = [name for name in tensors if name.startswith(("labels.", f"{LAYER}."))]
        self._private = {name: tensors[name].clone() for name in dense if self._interval > 1}
        self._last_read = {name: tensor.clone() for name, tensor in self._private.items()}
        groups = ParameterGroups(PARAMETERS, settings)
        weights = torch.from_numpy(corpus.weights.copy()).unsqueeze(1)
        tensors = {**tensors, **self._private}
        self._step = CompiledStep(settings, groups, tensors, weights, max_title_tokens(corpus))

    def run(self) -> None:
        """Computes all batches of this learner that the parent assigns, until the parent requests a stop.

        A run is the part of an epoch that the parent assigns at once.
        """
        last_run = 0
        while not self._control[STOP]:
            run = int(self._control[RUN])
            fence()
            assignment, progress = self._control.copy(), self._progress.copy()
            fence()
            if run in (0, last_run) or self._control[RUN] != run:  # the parent writes the next assignment
                time.sleep(POLL_SECONDS)
                continue
            last_run, finished, learners = run, int(progress[DONE]), self._learners
            rounds = -(-int(assignment[BATCHES] - assignment[FIRST]) // learners)
            for name, tensor in self._private.items():
                self._last_read[name].copy_(tensor.copy_(self._shared[name]))
            first_batch = int(assignment[FIRST]) + finished * learners + self._place
            _, batches = self._loader.epoch(int(assignment[EPOCH]), first_batch, every=learners)
            for number in range(finished, rounds):
                self._wait(lambda number=number: self._control[MAX_ROUNDS] > number)
                if (batch := next(batches, None)) is not None:  # None: no batch left in the epoch
                    self._run_batch(assignment, first_batch + (number - finished) * learners, batch)
                if (number + 1) % self._interval == 0 or number + 1 >= self._control[MAX_ROUNDS]:
                    self._exchange_dense()
                fence()
                self._progress[DONE] = number + 1

    def _run_batch(self, assignment: np.ndarray, number: int, batch: Batch) -> None:
        """Performs the step of batch ``number`` of the epoch, unless a killed learner has claimed it.

        If a gradient is not finite, marks the failure and waits until the parent requests a stop.
        """
        progress = self._progress
        if self._claimed[number]:
            progress[CUT_OFF] += 1
            return
        steps_before = self._steps_of_others()
        gradients = self._step.gradients(batch)
        if gradients is None:
            progress[FAILED] = number + 1
            self._wait(lambda: False)
        assert gradients is not None
        self._losses[number], staleness = gradients.loss, self._steps_of_others() - steps_before
        progress[SHOWN] += len(gradients.titles)
        progress[STALE] += staleness
        progress[MAX_STALE] = max(progress[MAX_STALE], staleness)
        self._claimed[number] += 1
        factor = self._settings.rate_factor(int(assignment[EPOCH]), number, int(assignment[BATCHES]))
        self._step.apply(gradients, factor, int(assignment[STEPS]) + number - int(assignment[FIRST]) + 1)

    def _wait(self, condition: Callable[[], bool]) -> None:
        """Waits until the condition is true. Exits the process if the parent requests a stop."""
        polls = 0
        while not condition():
            if self._control[STOP]:
                raise SystemExit
            time.sleep(POLL_SECONDS if polls > SPINS else 0)
            polls += 1
        fence()

    def _steps_of_others(self) -> int:
        """Returns the number of steps of the other learners."""
        return int(self._marks[:, DONE].sum() - self._progress[DONE])

    def _exchange_dense(self) -> None:
        """Adds the changes of the learner's dense parameters to the shared ones, and copies the result back.

        Adagrad's sums of squares are treated in the same way. Adam's moments are not exchanged.
        """
        for name, private in self._private.items():
            shared, last_read = self._shared[name], self._last_read[name]
            if name.endswith((".rows", ".sum")):
                last_read.copy_(private.copy_(shared.add_(private - last_read)))
            else:
                shared.copy_(private)
