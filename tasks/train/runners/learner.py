"""Learner: one of n processes that train on shared rows, each on every n-th batch of an epoch.

Learners exchange no messages and use no locks. Each learner derives the batches of the epoch from the seed
and uses every n-th batch. The parent process assigns work in the shared array ``control``. A learner reports
its progress in its row of the shared array ``marks``; if it is killed, its replacement resumes from this row.
Only one process writes each word of these arrays. A memory fence (fence.py) ensures that a process that sees
a changed word also sees the data that was written before this word. Writes to embedding rows are not ordered.
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
# Words of ``control``: number of the assignment (0 while the parent writes one), epoch, first batch, number
# of batches in the epoch, number of steps before the first batch, number of rounds that learners may start,
# and whether learners must stop. In a round, each learner trains on one batch.
ASSIGNMENT, EPOCH, FIRST_BATCH, BATCH_COUNT, STEPS_BEFORE, MAX_ROUNDS, STOP = range(7)
# Words of ``marks``: number of finished rounds; number, from 1, of a batch with a non-finite gradient; sum
# and maximum of the staleness (number of steps that other learners finish during a step of this learner);
# number of trained titles; number of batches that a kill of the learner has interrupted.
FINISHED_ROUNDS, FAILED_BATCH, STALENESS_SUM, MAX_STALENESS, TRAINED_TITLES, INTERRUPTED_BATCHES = range(6)
WORDS = 16  # number of 8-byte words in a row: enough that no two learners write to the same cache line
MAX_SPINS, POLL_SECONDS = 2000, 0.0005  # number of polls without a pause; pause between later polls


def learn(shared: Shared, number: int, folder: Path, settings: TrainSettings) -> None:
    """Runs a learner until its parent process requests a stop or ends.

    Args:
        shared: Shared memory with parameters, optimizer state, ``control`` and ``marks``.
        number: Number of the learner, from 0.
        folder: Folder of the Corpus.
        settings: Settings of the training run.
    """
    with worker_process():
        torch.set_num_threads(settings.threads or 1)
        _Learner(shared, number, folder, settings).run()


class _Learner:
    """Trains on the batches of one learner, on shared rows and without waiting for other learners.

    A learner marks a batch as claimed before it updates rows. If the learner is killed during the update, its
    replacement does not repeat the batch, although some rows have not been updated.
    """

    def __init__(self, shared: Shared, number: int, folder: Path, settings: TrainSettings) -> None:
        self._shared, self._number, self._settings, corpus = shared, number, settings, open_corpus(folder)
        self._control, self._marks = shared["control"].numpy(), shared["marks"].numpy()
        self._learners, self._progress = len(self._marks), self._marks[number]
        self._losses, self._claimed = shared["losses"].numpy(), shared["claimed"].numpy()
        self._loader = open_batches(corpus, settings, shared["titles"].numpy(), {}, workers=0)
        assert isinstance(settings.runner, Hogwild)
        self._interval, tensors = settings.runner.interval, shared.tensors
        dense_names = [name for name in tensors if name.startswith(("labels.", f"{LAYER}."))]
        self._dense_copies = {name: tensors[name].clone() for name in dense_names if self._interval > 1}
        self._last_exchanged = {name: tensor.clone() for name, tensor in self._dense_copies.items()}
        groups = ParameterGroups(PARAMETERS, settings)
        weights = torch.from_numpy(corpus.weights.copy()).unsqueeze(1)
        tensors = {**tensors, **self._dense_copies}
        self._step = CompiledStep(settings, groups, tensors, weights, max_title_tokens(corpus))

    def run(self) -> None:
        """Trains on the batches that the parent assigns, until the parent requests a stop.

        An assignment contains the remaining batches of an epoch.
        """
        last_assignment = 0
        while not self._control[STOP]:
            number = int(self._control[ASSIGNMENT])
            fence()
            assignment, progress = self._control.copy(), self._progress.copy()
            fence()
            if number in (0, last_assignment) or self._control[ASSIGNMENT] != number:
                time.sleep(POLL_SECONDS)  # until the parent has written the next assignment
                continue
            last_assignment, learners = number, self._learners
            finished_rounds = int(progress[FINISHED_ROUNDS])
            round_count = -(-int(assignment[BATCH_COUNT] - assignment[FIRST_BATCH]) // learners)
            for name, tensor in self._dense_copies.items():
                self._last_exchanged[name].copy_(tensor.copy_(self._shared[name]))
            first_batch = int(assignment[FIRST_BATCH]) + finished_rounds * learners + self._number
            _, batches = self._loader.epoch(int(assignment[EPOCH]), first_batch, stride=learners)
            for round_number in range(finished_rounds, round_count):
                self._wait(lambda number=round_number: self._control[MAX_ROUNDS] > number)
                if (batch := next(batches, None)) is not None:  # None: the epoch has no batch left
                    self._train(assignment, first_batch + (round_number - finished_rounds) * learners, batch)
                if (round_number + 1) % self._interval == 0 or round_number + 1 >= self._control[MAX_ROUNDS]:
                    self._exchange_dense()
                fence()
                self._progress[FINISHED_ROUNDS] = round_number + 1

    def _train(self, assignment: np.ndarray, number: int, batch: Batch) -> None:
        """Trains on batch ``number`` of the epoch, unless a killed learner has already claimed this batch.

        If a gradient is not finite, reports the batch in ``marks`` and waits until the parent stops it.
        """
        progress = self._progress
        if self._claimed[number]:
            progress[INTERRUPTED_BATCHES] += 1
            return
        steps_before = self._steps_of_others()
        gradients = self._step.gradients(batch)
        if gradients is None:
            progress[FAILED_BATCH] = number + 1
            self._wait(lambda: False)
        assert gradients is not None
        self._losses[number], staleness = gradients.loss, self._steps_of_others() - steps_before
        progress[TRAINED_TITLES] += len(gradients.title_sums)
        progress[STALENESS_SUM] += staleness
        progress[MAX_STALENESS] = max(progress[MAX_STALENESS], staleness)
        self._claimed[number] += 1
        factor = self._settings.rate_factor(int(assignment[EPOCH]), number, int(assignment[BATCH_COUNT]))
        step = int(assignment[STEPS_BEFORE]) + number - int(assignment[FIRST_BATCH]) + 1
        self._step.apply(gradients, factor, step)

    def _wait(self, condition: Callable[[], bool]) -> None:
        """Waits until the condition is true. Exits the process if the parent requests a stop."""
        polls = 0
        while not condition():
            if self._control[STOP]:
                raise SystemExit
            time.sleep(POLL_SECONDS if polls > MAX_SPINS else 0)
            polls += 1
        fence()

    def _steps_of_others(self) -> int:
        """Returns the number of steps that the other learners have finished in this epoch."""
        return int(self._marks[:, FINISHED_ROUNDS].sum() - self._progress[FINISHED_ROUNDS])

    def _exchange_dense(self) -> None:
        """Adds the learner's changes of its dense parameters to the shared ones, and copies the sums back.

        The sums of squares of Adagrad are exchanged in this way, too. Other optimizer state, such as the
        moments of Adam, overwrites the shared state.
        """
        for name, private_copy in self._dense_copies.items():
            shared, exchanged_copy = self._shared[name], self._last_exchanged[name]
            if name.endswith((".rows", ".sum")):
                exchanged_copy.copy_(private_copy.copy_(shared.add_(private_copy - exchanged_copy)))
            else:
                shared.copy_(private_copy)
