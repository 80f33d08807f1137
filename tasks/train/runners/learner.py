"""A learner: a process that makes every n-th step of an epoch, on rows that it shares with the others.

Nothing is sent and nothing is locked: each learner draws the epoch's plan from its seed and takes its own
share of it; a word of shared memory has one writer. The parent writes ``control``; a learner writes its row
of ``marks``, from which its replacement sees, should it be killed, where to go on. That a word is seen after
what was written before it is the order of x86-64; elsewhere the interpreter's own locks between the two order
them.
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
# of control: number of the epoch's run (0: being written), epoch, its first batch and how many it has, steps
# before the first, rounds that may be made; whether to end
RUN, EPOCH, FIRST, BATCHES, STEPS, UNTIL, STOP = range(7)
# of marks: rounds finished; rounds whose gradients are there, batches whose rows are copied, batches whose
# rows are moved (Owners); batch with a gradient that is not finite, from 1; steps of others, and the most of
# them, between a learner's reading and writing; titles shown; batches cut off by a kill
DONE, COMPUTED, COPIED, MOVED, FAILED, STALE, STALEST, SHOWN, CUT = range(9)
WORDS = 16  # of 8 bytes: no two learners write one line of the processor's cache
SPINS, POLL = 2000, 0.0005  # how often a learner looks before it sleeps, and for how long, in seconds


def learn(shared: Shared, place: int, folder: Path, settings: TrainSettings) -> None:
    """The process: steps until it is told to stop, or its parent is gone."""
    with worker_process():
        torch.set_num_threads(settings.threads or 1)
        kind = _Owner if isinstance(settings.runner, Owners) else _Hogwild
        kind(shared, place, folder, settings).work()


class _Learner:
    """What both kinds do: waits for work, takes its batches, keeps its marks."""

    def __init__(self, shared: Shared, place: int, folder: Path, settings: TrainSettings) -> None:
        self.shared, self.place, self.settings, corpus = shared, place, settings, open_corpus(folder)
        self.control, self.marks = shared["control"].numpy(), shared["marks"].numpy()
        self.learners, self.own = len(self.marks), self.marks[place]
        self.losses, self.handed = shared["losses"].numpy(), shared["handed"].numpy()
        self.loader = open_batches(folder, corpus, settings, shared["titles"].numpy(), {}, workers=0)
        groups, weights = ParameterGroups(PARAMETERS, settings), torch.from_numpy(corpus.weights.copy())
        tensors, rooms = self.tensors(), self.rooms()
        self.step = CompiledStep(
            settings, groups, tensors, weights.unsqueeze(1), max_title_tokens(corpus), rooms
        )

    def tensors(self) -> Mapping[str, Tensor]:
        """Parameters and state that the step changes, by name."""
        return self.shared.tensors

    def rooms(self) -> Mapping[str, np.ndarray]:
        """Memory that the step shall work in."""
        return {}

    def begin(self) -> None:
        """Called when the parent has written the parameters."""

    def turn(self, work: np.ndarray, done: int, batch: Batch | None) -> None:
        """Makes round ``done``; None where the epoch has no batch left for this learner."""
        raise NotImplementedError

    def work(self) -> None:
        """Makes its share of every run."""
        seen = 0
        while not self.control[STOP]:
            work, own = self.control.copy(), self.own.copy()
            if work[RUN] in (0, seen) or self.control[RUN] != work[RUN]:
                time.sleep(POLL)
                continue
            seen, done, learners = work[RUN], int(own[DONE]), self.learners
            rounds = -(-int(work[BATCHES] - work[FIRST]) // learners)
            self.begin()
            first = int(work[FIRST]) + done * learners + self.place
            _, batches = self.loader.epoch(int(work[EPOCH]), first, every=learners)
            for number in range(done, rounds):
                self.wait(lambda number=number: self.control[UNTIL] > number)
                self.turn(work, number, next(batches, None))
                self.own[DONE] = number + 1

    def wait(self, holds: Callable[[], bool]) -> None:
        """Returns when a condition holds; leaves the process when it is to stop."""
        looks = 0
        while not holds():
            if self.control[STOP]:
                raise SystemExit
            time.sleep(POLL if looks > SPINS else 0)
            looks += 1

    def gradients(self, batch: Batch, number: int) -> Gradients:
        """Those of batch ``number``, with its loss noted; waits for the end where one is not finite."""
        found = self.step.gradients(batch)
        if found is None:
            self.own[FAILED] = number + 1
            self.wait(lambda: False)
        assert found is not None
        self.losses[number] = found.loss
        return found

    def count(self, titles: int, stale: int) -> None:
        """Counts a step."""
        self.own[SHOWN] += titles
        self.own[STALE] += stale
        self.own[STALEST] = max(self.own[STALEST], stale)

    def place_of(self, work: np.ndarray, number: int) -> tuple[float, int]:
        """Factor on the learning rates, and number, of a batch's step."""
        factor = self.settings.rate_factor(int(work[EPOCH]), number, int(work[BATCHES]))
        return factor, int(work[STEPS]) + number - int(work[FIRST]) + 1


class _Hogwild(_Learner):
    """Steps on the shared rows as they are. A batch is marked before its rows move, so that the replacement
    of a learner that was killed in between does not show it again: some of its rows were not moved.
    """

    def tensors(self) -> Mapping[str, Tensor]:
        assert isinstance(self.settings.runner, Hogwild)
        self._interval, tensors = self.settings.runner.interval, self.shared.tensors
        dense = [name for name in tensors if name.startswith(("labels.", f"{LAYER}."))]
        self._private = {name: tensors[name].clone() for name in dense if self._interval > 1}
        self._read = {name: own.clone() for name, own in self._private.items()}
        return {**tensors, **self._private}

    def begin(self) -> None:
        for name, own in self._private.items():
            self._read[name].copy_(own.copy_(self.shared[name]))

    def turn(self, work: np.ndarray, done: int, batch: Batch | None) -> None:
        number = int(work[FIRST]) + done * self.learners + self.place
        if batch is not None and self.handed[number]:
            self.own[CUT] += 1
        elif batch is not None:
            before = self._others()
            gradients = self.gradients(batch, number)
            self.count(len(gradients.titles), self._others() - before)
            self.handed[number] += 1
            self.step.apply(gradients, *self.place_of(work, number))
        if (done + 1) % self._interval == 0 or done + 1 >= self.control[UNTIL]:
            self._exchange()

    def _others(self) -> int:
        """Steps that the others have made."""
        return int(self.marks[:, DONE].sum() - self.own[DONE])

    def _exchange(self) -> None:
        """Adds what the private copies moved by, and reads them anew. Sums of squares add up as well; Adam's
        moments, which shrink at every step, stay each learner's own.
        """
        for name, own in self._private.items():
            shared, read = self.shared[name], self._read[name]
            if name.endswith((".rows", ".sum")):
                read.copy_(own.copy_(shared.add_(own - read)))
            else:
                shared.copy_(own)


class _Owner(_Learner):
    """A round: each learner leaves the gradients of its batch in shared memory; when all are there, each
    moves the rows that it owns by one batch after the other; when all have, the next round begins. Rows are
    copied before they are moved, so that the replacement of a learner that was killed can begin again.
    """

    def rooms(self) -> Mapping[str, np.ndarray]:
        self._slots = [
            {name: own.numpy() for name, own in self.shared.below(f"slot.{place}.").items()}
            for place in range(self.learners)
        ]
        self._copies = {
            name: list(self.shared.below(f"copy.{self.place}.{name}.").values()) for name in PARAMETERS
        }
        return {name: own for name, own in self._slots[self.place].items() if name not in ("ids", "sizes")}

    def turn(self, work: np.ndarray, done: int, batch: Batch | None) -> None:
        first, learners, own = int(work[FIRST]) + done * self.learners, self.learners, self.own
        if own[COMPUTED] <= done:
            slot = self._slots[self.place]
            slot["sizes"][:] = 0
            if batch is not None:
                found = self.gradients(batch, first + self.place)
                ids, titles = found.entries[0], len(found.titles)
                slot["ids"][: len(ids)] = ids
                slot["sizes"][:] = len(ids), len(found.entries[2]), titles, found.layer is not None
                self.count(titles, self.place)
                self.handed[first + self.place] = 1
            own[COMPUTED] = done + 1
        self.wait(lambda: self.marks[:, COMPUTED].min() > done)
        for place in range(learners):
            if own[MOVED] > (mark := done * learners + place):
                continue
            if gradients := self._left(place):
                self._copy(gradients.entries[0], back=bool(own[COPIED] > mark))
                own[COPIED] = mark + 1
                self.step.apply(gradients, *self.place_of(work, first + place), (self.place, learners))
            own[MOVED] = mark + 1
        self.wait(lambda: self.marks[:, MOVED].min() >= (done + 1) * learners)

    def _left(self, place: int) -> Gradients | None:
        """What a learner left in this round."""
        slot, (dim, features) = self._slots[place], self.shared[f"{LAYER}.rows"].shape
        ids, entries, titles, layered = slot["sizes"].tolist()
        if not titles:
            return None
        held = (
            slot["ids"][:ids],
            slot["starts"][: ids + 1],
            slot["owners"][:entries],
            slot["values"][:entries],
        )
        layer = slot["of_layer"][: dim * features].reshape(dim, features) if layered else None
        grads = slot["grads"][: titles * dim].reshape(titles, dim)
        return Gradients(0.0, held, grads, slot["of_labels"].reshape(-1, dim), layer)

    def _copy(self, ids: np.ndarray, back: bool) -> None:
        """Copies the rows and state that this learner is about to move, or brings them back."""
        for name, copies in self._copies.items():
            arrays = self.step.parameters[name].arrays
            every = ids if name == "rows" else np.arange(len(arrays[0]))
            own = every[every % self.learners == self.place]
            for array, copy in zip((array for array in arrays if len(array)), copies, strict=True):
                if back:
                    array[own] = copy.numpy()[: len(own)]
                else:
                    copy.numpy()[: len(own)] = array[own]
