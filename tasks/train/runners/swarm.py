"""Learners in processes of their own, beside the one that trains: it hands out epochs, reads how far they
are, replaces those that were killed, and copies rows in before an epoch and out when it is done or saved.
"""

import contextlib
import math
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
from tasks.encoder.bags import LAYER
from tasks.loading.loader import BatchLoader
from tasks.train.compiled_step import max_title_tokens, unsupported_reason
from tasks.train.objectives import Label
from tasks.train.runners import Hogwild, Owners
from tasks.train.runners.learner import (
    BATCHES,
    CUT,
    DONE,
    EPOCH,
    FAILED,
    FIRST,
    PARAMETERS,
    RUN,
    SHOWN,
    STALE,
    STALEST,
    STEPS,
    STOP,
    UNTIL,
    WORDS,
    learn,
)
from tasks.train.step import Trainer
from tasks.train.tables import MappedTable

AHEAD = 1024  # rounds that learners may make beyond the foremost: what a checkpoint within an epoch waits for
POLL = 0.002  # seconds between two looks at the learners
FUTILE = 20  # kills of one learner without a step between them, after which memory must be short


class Swarm:
    """The learners of a run.

    Args:
        runner: How many, and how they share.
        learner: Whose parameters they change.
        folder: Of the Corpus.
        corpus: The same, opened.
        titles: That are trained on, int64.
        loader: Of all batches.

    Raises:
        ValueError: The compiled step does not know the settings.
    """

    def __init__(
        self,
        runner: Hogwild | Owners,
        learner: Trainer,
        folder: Path,
        corpus: OpenCorpus,
        titles: np.ndarray,
        loader: BatchLoader,
    ) -> None:
        if reason := unsupported_reason(learner.settings, learner.groups, learner.device, resident=True):
            raise ValueError(f"train.runner is {runner.name}, but {reason}; choose train.runner=sequential")
        self.count, self.replaced, self._learner, self._loader = runner.learners, 0, learner, loader
        self._folder, self._corpus, self._titles = folder, corpus, titles
        self.shared: Shared | None = None
        self._processes: list[BaseProcess] = []
        self._futile = [(0, 0)] * self.count  # rounds done at its last kill, and kills since they were more
        learner.step_description = f"training by {self.count} learners ({runner.name}), by the compiled step"

    @property
    def pids(self) -> list[int | None]:
        """Process numbers of the learners."""
        return [process.pid for process in self._processes]

    def show(
        self, epoch: int, first: int, batches: int, save_seconds: float
    ) -> Iterator[tuple[list[float], dict[str, float]]]:
        """Makes the steps of an epoch from batch ``first`` on. Each time the parameters are to be saved, and
        at the end, the learner has them, and yielded are the losses of the batches since the last time and
        what is known of the learners.
        """
        shared = self._begin(epoch, first, batches)
        control, marks = shared["control"].numpy(), shared["marks"].numpy()
        rounds, steps = -(-(batches - first) // self.count), self._learner.steps
        ahead, until, shown, saved = AHEAD if save_seconds else 1, 0, 0, time.monotonic()
        while True:
            least, most = int(marks[:, DONE].min()), int(marks[:, DONE].max())
            if least == until and (until == rounds or (until and time.monotonic() - saved >= save_seconds)):
                done = min(until * self.count, batches - first)
                assert (shared["handed"][first : first + done] == 1).all(), "a batch was lost or shown twice"
                self._learner.restore(shared.__getitem__)
                self._learner.steps, saved = steps + done, time.monotonic()
                yield shared["losses"][first + shown : first + done].tolist(), self._known(marks, done)
                shown = done
                if until == rounds:
                    return
            if until == least or time.monotonic() - saved < save_seconds:
                control[UNTIL] = until = min(rounds, most + ahead)
            multiprocessing.connection.wait([process.sentinel for process in self._processes], POLL)
            self._replace(marks)
            if failed := int(marks[:, FAILED].max()):
                self._refuse(shared, epoch, failed - 1)

    def close(self) -> None:
        """Ends the learners."""
        if self.shared is not None:
            self.shared["control"][STOP] = 1
        for process in self._processes:
            process.join(2.0)
            process.kill()
            process.join()
        self._processes, self.shared = [], None

    def _begin(self, epoch: int, first: int, batches: int) -> Shared:
        """Copies the parameters in and hands the epoch out; starts the learners before the first."""
        shared = self.shared = self.shared or self._allocate()
        for name, part in self._learner.parts().items():
            begin = 0
            for piece in part.pieces():
                shared[name][begin : begin + len(piece)] = piece
                begin += len(piece)
        control, run = shared["control"], int(shared["control"][RUN])
        control[RUN] = 0
        shared["marks"].zero_()
        shared["handed"].zero_()
        for word, value in ((EPOCH, epoch), (FIRST, first), (BATCHES, batches), (STEPS, self._learner.steps)):
            control[word] = value
        control[UNTIL], self.replaced = 0, 0
        control[RUN] = run + 1
        self._futile = [(0, 0)] * self.count
        self._processes = self._processes or [self._start(place) for place in range(self.count)]
        return shared

    def _allocate(self) -> Shared:
        learner, settings, count = self._learner, self._learner.settings, self.count
        parts = learner.parts()
        shapes = {name: (part.shape, part.dtype) for name, part in parts.items()}
        shapes |= {"control": ((WORDS,), torch.int64), "marks": ((count, WORDS), torch.int64)}
        titles = len(self._titles)
        shapes |= {"titles": ((titles,), torch.int64)}
        shapes |= {"losses": ((titles,), torch.float64), "handed": ((titles,), torch.uint8)}
        if isinstance(settings.runner, Owners):
            assert isinstance(settings.objective, Label)
            batch = min(settings.objective.batch_size, titles)
            entries = batch * max_title_tokens(self._corpus)
            ids = min(entries, parts["rows"].shape[0])
            dense = {name: parts[f"{name}.rows"].shape for name in ("labels", LAYER)}
            slot = {"ids": (ids, torch.int64), "sizes": (4, torch.int64)}
            slot |= {"starts": (entries + 1, torch.int32), "owners": (entries, torch.int32)}
            slot |= {"values": (entries, torch.float32), "grads": (batch * settings.dim, torch.float32)}
            slot |= {"of_labels": (math.prod(dense["labels"]), torch.float32)}
            slot |= {"of_layer": (math.prod(dense[LAYER]), torch.float32)}
            for place in range(count):
                shapes |= {f"slot.{place}.{name}": ((own[0],), own[1]) for name, own in slot.items()}
                for name in PARAMETERS:
                    prefix, most = ("", ids) if name == "rows" else (f"{name}.", dense[name][0])
                    for part in (
                        f"{prefix}rows",
                        f"{prefix}state.sum",
                        f"{prefix}state.first",
                        f"{prefix}state.second",
                    ):
                        if part in parts:
                            shapes[f"copy.{place}.{name}.{part}"] = (
                                (most, *parts[part].shape[1:]),
                                torch.float32,
                            )
        table, folder = settings.table, None
        if isinstance(table, MappedTable):
            folder = Path(table.folder or tempfile.gettempdir())
        shared = Shared(shapes, folder)
        shared["titles"].copy_(torch.from_numpy(self._titles))
        return shared

    def _start(self, place: int) -> BaseProcess:
        context = multiprocessing.get_context("forkserver")  # a forked child of a Prefect task dies
        context.set_forkserver_preload(["numba", learn.__module__])  # imported once, not by every learner
        given = self.shared, place, self._folder, self._learner.settings
        for _ in range(FUTILE):
            process = context.Process(target=learn, args=given, name=f"learner {place}")
            with contextlib.suppress(BrokenPipeError, EOFError):  # killed before it has its arguments
                process.start()
                return process
        raise RuntimeError(f"learner {place} was killed {FUTILE} times while it started; is memory short?")

    def _replace(self, marks: np.ndarray) -> None:
        """Starts a learner in place of each that was killed."""
        for place, process in enumerate(self._processes):
            if (code := process.exitcode) is None:
                continue
            if code >= 0:
                raise RuntimeError(f"learner {place} ended with exit code {code}; what it printed says why")
            done, (before, kills) = int(marks[place, DONE]), self._futile[place]
            self._futile[place] = done, kills + 1 if done == before else 0
            if kills >= FUTILE:
                text = f"learner {place} was killed {kills} times without a step between; is memory short?"
                raise RuntimeError(f"{text} Take fewer train.runner.learners")
            self.replaced += 1
            self._processes[place] = self._start(place)

    def _refuse(self, shared: Shared, epoch: int, number: int) -> None:
        """Makes a step whose gradient was not finite by the mechanism, which raises NonFiniteGradient."""
        self._learner.restore(shared.__getitem__)
        self._learner.step(next(self._loader.epoch(epoch, number)[1]), 1.0)
        raise ArithmeticError(
            f"a gradient of batch {number} was not finite, but is now; lower the learning rate"
        )

    def _known(self, marks: np.ndarray, steps: int) -> dict[str, float]:
        """Of an epoch: staleness of its steps, learners replaced, batches cut off, titles shown."""
        stale, stalest = marks[:, STALE].sum() / max(1, steps), marks[:, STALEST].max()
        known = {"staleness": stale, "staleness_max": stalest, "learners_replaced": self.replaced}
        known |= {"batches_cut_off": marks[:, CUT].sum(), "shown": marks[:, SHOWN].sum()}
        return {name: float(value) for name, value in known.items()}
