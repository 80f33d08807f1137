"""A learner process, which computes every n-th step of an epoch on rows that it shares with other learners.

There are no messages and no locks: each learner derives the plan of the epoch from the seed and takes its
share of it, and each word of shared memory has one writer. The parent writes ``control``. A learner writes
its row of ``marks``, from which its replacement resumes if it is killed. A word becomes visible after all
earlier writes: x86-64 guarantees this order; on other processors, the locks of the interpreter do.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from storage.formats.corpus import open_corpus
from storage.tables import Shared
from tasks.encoder.bags import LAYER
from tasks.loading.loader import Batch
from tasks.optimizers.parameter_groups import ParameterGroups
from tasks.pool import worker_process
from tasks.train.batches import open_batches
from tasks.train.compiled_step import CompiledStep, Gradients, max_title_tokens
from tasks.train.runners import Hogwild, Owners
from tasks.train.settings import TrainSettings

PARAMETERS = ["rows", "labels", LAYER]
# words of control: run number (0: being written), epoch, first batch, number of batches, steps before the
# first batch, rounds that may be run, whether to stop
RUN, EPOCH, FIRST, BATCHES, STEPS, MAX_ROUNDS, STOP = range(7)
# words of marks: finished rounds; rounds with computed gradients, batches with copied rows, batches with
# updated rows (all Owners); batch with a non-finite gradient, from 1; sum and maximum of the steps of other
# learners between reading and writing; titles shown; batches cut off by a kill
DONE, COMPUTED, COPIED, MOVED, FAILED, STALE, MAX_STALE, SHOWN, CUT_OFF = range(9)
WORDS = 16  # of 8 bytes per row: no two learners write to the same cache line
SPINS, POLL_SECONDS = 2000, 0.0005  # polls before a learner sleeps between polls, and for how long


def learn(shared: Shared, place: int, folder: Path, settings: TrainSettings) -> None:
    """Entry point of the process; runs until the parent requests a stop or ends."""
    with worker_process():
        torch.set_num_threads(settings.threads or 1)
        kind = _Owner if isinstance(settings.runner, Owners) else _Hogwild
        kind(shared, place, folder, settings).run()


class _Learner:
    """Base class: waits for runs, takes its share of the batches and updates its marks."""

    def __init__(self, shared: Shared, place: int, folder: Path, settings: TrainSettings) -> None:
        self.shared, self.place, self.settings, corpus = shared, place, settings, open_corpus(folder)
        self.control, self.marks = shared["control"].numpy(), shared["marks"].numpy()
        self.learners, self.progress = len(self.marks), self.marks[place]
        self.losses, self.claimed = shared["losses"].numpy(), shared["claimed"].numpy()
        self.loader = open_batches(folder, corpus, settings, shared["titles"].numpy(), {}, workers=0)
        groups, weights = ParameterGroups(PARAMETERS, settings), torch.from_numpy(corpus.weights.copy())
        tensors, scratch = self.tensors(), self.scratch_buffers()
        self.step = CompiledStep(
            settings, groups, tensors, weights.unsqueeze(1), max_title_tokens(corpus), scratch
        )

    def tensors(self) -> Mapping[str, Tensor]:
        """Returns the parameters and state that the step updates, by name."""
        return self.shared.tensors

    def scratch_buffers(self) -> Mapping[str, np.ndarray]:
        """Returns scratch buffers of the step by name; others are allocated."""
        return {}

    def begin(self) -> None:
        """Called after the parent has written the parameters of a run."""

    def run_round(self, assignment: np.ndarray, round_number: int, batch: Batch | None) -> None:
        """Computes a round, numbered from 0; ``batch`` is None if the learner has none left in the epoch."""
        raise NotImplementedError

    def run(self) -> None:
        """Computes the share of this learner in every run until the parent requests a stop."""
        last_run = 0
        while not self.control[STOP]:
            assignment, progress = self.control.copy(), self.progress.copy()
            if assignment[RUN] in (0, last_run) or self.control[RUN] != assignment[RUN]:
                time.sleep(POLL_SECONDS)
                continue
            last_run, finished, learners = assignment[RUN], int(progress[DONE]), self.learners
            rounds = -(-int(assignment[BATCHES] - assignment[FIRST]) // learners)
            self.begin()
            first = int(assignment[FIRST]) + finished * learners + self.place
            _, batches = self.loader.epoch(int(assignment[EPOCH]), first, every=learners)
            for number in range(finished, rounds):
                self.wait(lambda number=number: self.control[MAX_ROUNDS] > number)
                self.run_round(assignment, number, next(batches, None))
                self.progress[DONE] = number + 1

    def wait(self, condition: Callable[[], bool]) -> None:
        """Blocks until the condition holds; exits the process if the parent requests a stop."""
        polls = 0
        while not condition():
            if self.control[STOP]:
                raise SystemExit
            time.sleep(POLL_SECONDS if polls > SPINS else 0)
            polls += 1

    def gradients(self, batch: Batch, number: int) -> Gradients:
        """Computes the gradients of batch ``number`` and stores its loss.

        If a gradient is not finite, marks the failure and blocks until the parent requests a stop.
        """
        gradients = self.step.gradients(batch)
        if gradients is None:
            self.progress[FAILED] = number + 1
            self.wait(lambda: False)
        assert gradients is not None
        self.losses[number] = gradients.loss
        return gradients

    def count_step(self, titles: int, stale: int) -> None:
        """Adds a step to the marks."""
        self.progress[SHOWN] += titles
        self.progress[STALE] += stale
        self.progress[MAX_STALE] = max(self.progress[MAX_STALE], stale)

    def rate_and_step(self, assignment: np.ndarray, number: int) -> tuple[float, int]:
        """Returns the learning-rate factor and the number of the step of a batch."""
        factor = self.settings.rate_factor(int(assignment[EPOCH]), number, int(assignment[BATCHES]))
        return factor, int(assignment[STEPS]) + number - int(assignment[FIRST]) + 1


class _Hogwild(_Learner):
    """Updates shared rows without waiting. A batch is claimed before its rows are updated, so the replacement
    of a killed learner does not repeat it; some of its rows may not have been updated.
    """

    def tensors(self) -> Mapping[str, Tensor]:
        assert isinstance(self.settings.runner, Hogwild)
        self._interval, tensors = self.settings.runner.interval, self.shared.tensors
        dense = [name for name in tensors if name.startswith(("labels.", f"{LAYER}."))]
        self._private = {name: tensors[name].clone() for name in dense if self._interval > 1}
        self._read = {name: tensor.clone() for name, tensor in self._private.items()}
        return {**tensors, **self._private}

    def begin(self) -> None:
        for name, tensor in self._private.items():
            self._read[name].copy_(tensor.copy_(self.shared[name]))

    def run_round(self, assignment: np.ndarray, round_number: int, batch: Batch | None) -> None:
        number = int(assignment[FIRST]) + round_number * self.learners + self.place
        if batch is not None and self.claimed[number]:
            self.progress[CUT_OFF] += 1
        elif batch is not None:
            steps_before = self._steps_of_others()
            gradients = self.gradients(batch, number)
            self.count_step(len(gradients.titles), self._steps_of_others() - steps_before)
            self.claimed[number] += 1
            self.step.apply(gradients, *self.rate_and_step(assignment, number))
        if (round_number + 1) % self._interval == 0 or round_number + 1 >= self.control[MAX_ROUNDS]:
            self._exchange_dense()

    def _steps_of_others(self) -> int:
        """Returns the number of steps of the other learners."""
        return int(self.marks[:, DONE].sum() - self.progress[DONE])

    def _exchange_dense(self) -> None:
        """Adds the changes of the private copies to the shared parameters and reloads the copies.

        Sums of squares are added as well. Adam's moments decay at each step, so each learner has separate
        ones.
        """
        for name, private in self._private.items():
            shared, read = self.shared[name], self._read[name]
            if name.endswith((".rows", ".sum")):
                read.copy_(private.copy_(shared.add_(private - read)))
            else:
                shared.copy_(private)


class _Owner(_Learner):
    """Writes only the rows that it owns. In a round, each learner stores the gradients of its batch in shared
    memory. After all have done so, each updates its rows batch by batch. The next round starts when all have
    finished. Rows are copied before an update, so that the replacement of a killed learner can repeat it.
    """

    def scratch_buffers(self) -> Mapping[str, np.ndarray]:
        self._slots = [
            {name: tensor.numpy() for name, tensor in self.shared.with_prefix(f"slot.{place}.").items()}
            for place in range(self.learners)
        ]
        self._copies = {
            name: list(self.shared.with_prefix(f"copy.{self.place}.{name}.").values()) for name in PARAMETERS
        }
        return {
            name: tensor for name, tensor in self._slots[self.place].items() if name not in ("ids", "sizes")
        }

    def run_round(self, assignment: np.ndarray, round_number: int, batch: Batch | None) -> None:
        learners, progress = self.learners, self.progress
        first = int(assignment[FIRST]) + round_number * learners
        if progress[COMPUTED] <= round_number:
            slot = self._slots[self.place]
            slot["sizes"][:] = 0
            if batch is not None:
                gradients = self.gradients(batch, first + self.place)
                ids, titles = gradients.entries[0], len(gradients.titles)
                slot["ids"][: len(ids)] = ids
                slot["sizes"][:] = len(ids), len(gradients.entries[2]), titles, gradients.layer is not None
                self.count_step(titles, self.place)
                self.claimed[first + self.place] = 1
            progress[COMPUTED] = round_number + 1
        self.wait(lambda: self.marks[:, COMPUTED].min() > round_number)
        for place in range(learners):
            if progress[MOVED] > (mark := round_number * learners + place):
                continue
            if gradients := self._read_gradients(place):
                self._copy_rows(gradients.entries[0], restore=bool(progress[COPIED] > mark))
                progress[COPIED] = mark + 1
                self.step.apply(
                    gradients, *self.rate_and_step(assignment, first + place), (self.place, learners)
                )
            progress[MOVED] = mark + 1
        self.wait(lambda: self.marks[:, MOVED].min() >= (round_number + 1) * learners)

    def _read_gradients(self, place: int) -> Gradients | None:
        """Returns the gradients that a learner stored in this round, or None if it had no batch."""
        slot, (dim, features) = self._slots[place], self.shared[f"{LAYER}.rows"].shape
        ids, entry_count, titles, layered = slot["sizes"].tolist()
        if not titles:
            return None
        entries = (
            slot["ids"][:ids],
            slot["starts"][: ids + 1],
            slot["owners"][:entry_count],
            slot["values"][:entry_count],
        )
        layer = slot["of_layer"][: dim * features].reshape(dim, features) if layered else None
        grads = slot["grads"][: titles * dim].reshape(titles, dim)
        return Gradients(0.0, entries, grads, slot["of_labels"].reshape(-1, dim), layer)

    def _copy_rows(self, ids: np.ndarray, restore: bool) -> None:
        """Copies the rows and state that this learner updates next, or restores them from the copy."""
        for name, copies in self._copies.items():
            arrays = self.step.parameters[name].arrays
            candidates = ids if name == "rows" else np.arange(len(arrays[0]))
            selected = candidates[candidates % self.learners == self.place]
            for array, copy in zip((array for array in arrays if len(array)), copies, strict=True):
                if restore:
                    array[selected] = copy.numpy()[: len(selected)]
                else:
                    copy.numpy()[: len(selected)] = array[selected]
