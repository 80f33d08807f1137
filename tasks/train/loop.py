"""The training loop: epochs of steps, a tuning score after each, early stopping with the best epoch kept.

One process and one seed give the same bits, also across a resume within an epoch: randomness belongs to
(seed, epoch, batch), so a checkpoint needs the position of the next batch beside rows, state and history.
"""

import math
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import torch

from storage.artifacts import Progress
from storage.formats.corpus import open_corpus
from tasks.encoder.bags import Bagger
from tasks.loading.loader import Batch
from tasks.optimizers.parameter_groups import NonFiniteGradient
from tasks.train.batches import open_batches
from tasks.train.checkpoint import Checkpointer, MemoryCheckpointer, Position
from tasks.train.early_stopping import COLLAPSED, TuningSet
from tasks.train.runners import OneProcess
from tasks.train.runners.swarm import Swarm
from tasks.train.settings import TrainSettings
from tasks.train.step import Trainer

GROWN = 1.5  # a loss this many times the first epoch's is divergence
_FORMATS = {"loss": "loss {:.4f}", "tuning_score": "tuning score {:.4f}"}
_FORMATS |= {"titles_per_second": "{:.0f} titles/s", "staleness": "staleness {:.2f}"}
_FORMATS |= {"learners_replaced": "{:.0f} learners replaced"}


def choose_device(name: str) -> torch.device:
    """The device that train.device names, if torch sees one; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise ValueError(f"train.device is {name!r}; it can be 'auto', 'cpu', 'cuda' or 'cuda:N'")
    if name != "cpu" and not torch.cuda.is_available():
        raise ValueError(f"train.device is {name!r}, but torch sees no CUDA device here; use 'auto' or 'cpu'")
    return torch.device(name)


class Diverged(ArithmeticError):
    """Training went wrong (see the message) before any epoch was worth keeping."""


class Training:
    """A training run over a Corpus folder that can be interrupted at any batch; ``compiled``: see Trainer."""

    def __init__(self, corpus_folder: Path, settings: TrainSettings, compiled: bool | None = None) -> None:
        self.settings, self.corpus_folder, self.position = settings, corpus_folder, Position()
        device, corpus = choose_device(settings.device), open_corpus(corpus_folder)
        aside = settings.tuning_share if settings.patience else 0.0
        self.tuning_set = TuningSet(corpus_folder, corpus, aside)
        if (titles := len(self.tuning_set.training)) < 2:
            raise ValueError(f"the corpus has {titles} labelled training titles; two or more are needed")
        self.trainer, training = Trainer(corpus, settings, device, compiled), self.tuning_set.training
        self.table, pin = self.trainer.table, device.type == "cuda"
        given = corpus_folder, corpus, settings, training, self.trainer.buffers
        self.loader = open_batches(*given, workers=settings.workers, pin=pin)
        self._corpus, self.swarm, runner = corpus, None, settings.runner
        if not isinstance(runner, OneProcess):
            self.swarm = Swarm(runner, self.trainer, corpus_folder, corpus, training, self.loader)
        self._of_learners: dict[str, float] = {}  # of the last epoch

    @property
    def history(self) -> list[dict[str, float]]:
        """Metrics of each finished epoch."""
        return self.position.history

    def resume(self, checkpointer: Checkpointer) -> None:
        """Restores the last checkpoint; raises ValueError if it has other settings or another corpus."""
        self.position = checkpointer.resume(self.trainer)

    def run(self, checkpointer: Checkpointer | MemoryCheckpointer | None = None) -> Iterator[Progress]:
        """Trains the remaining epochs, a Progress after each; in the end the learner holds the best epoch.
        Diverged if not even the first was worth keeping.
        """
        try:
            yield from self._epochs(checkpointer or MemoryCheckpointer())
        finally:
            if self.swarm:
                self.swarm.close()

    def _epochs(self, checkpointer: Checkpointer | MemoryCheckpointer) -> Iterator[Progress]:
        position, epochs = self.position, self.settings.epochs
        while position.epoch < epochs and not self._stopped():
            started, shown, note, threads = time.perf_counter(), 0, "", torch.get_num_threads()
            torch.set_num_threads(self.settings.threads or threads)
            try:
                shown = self._one_epoch(checkpointer)
                self._finish_epoch()
            except Diverged as error:
                if not position.best:
                    raise
                note = f"{error}; epoch {position.best} is kept"
            finally:
                torch.set_num_threads(threads)
            if note:
                checkpointer.restore_best(self.trainer)
                yield Progress(position.epoch, epochs, note=note)
                return
            checkpointer.save(self.trainer, position)
            if position.best == position.epoch:
                checkpointer.mark_best(self.trainer)
            metrics = {**self.history[-1], "titles_per_second": shown / (time.perf_counter() - started)}
            metrics |= self._of_learners
            yield Progress(position.epoch, epochs, metrics, self._stopped())
        if position.best != position.epoch:
            checkpointer.restore_best(self.trainer)

    def _one_epoch(self, checkpointer: Checkpointer | MemoryCheckpointer) -> int:
        """Shows the remaining titles of the epoch; how many."""
        position, settings, saved = self.position, self.settings, time.monotonic()
        shown = skipped = 0
        if self.swarm:
            return self._by_learners(
                self.swarm, self.loader.epoch(position.epoch, position.batch)[0], checkpointer
            )
        self.trainer.defers = True
        loss = torch.tensor(
            position.loss, dtype=torch.float64, device=self.trainer.device
        )  # no .item() in a step
        for batches, batch in self.batches(position.epoch, position.batch):
            try:
                factor = settings.rate_factor(position.epoch, position.batch, batches)
                loss += self.trainer.step(batch, factor)
            except NonFiniteGradient as error:
                raise Diverged(self._explain(error)) from error
            position.batch += 1
            shown += len(batch.bags.offsets) - 1
            if time.monotonic() - saved >= settings.save_seconds and position.batch < batches:
                if skipped := self.trainer.skipped():
                    break
                position.loss = loss.item()
                checkpointer.save(self.trainer, position)
                saved = time.monotonic()
        if skipped := skipped or self.trainer.skipped():
            self._repeat(position.batch - skipped)
        position.loss = loss.item()
        return shown

    def _repeat(self, number: int) -> None:
        """Makes the first step that a GPU skipped once more, and waits for its gradient."""
        self.trainer.defers = False
        count, batches = self.loader.epoch(self.position.epoch, number)
        try:
            self.trainer.step(next(batches), self.settings.rate_factor(self.position.epoch, number, count))
        except NonFiniteGradient as error:
            raise Diverged(self._explain(error)) from error
        raise RuntimeError(f"step {self.trainer.steps} was skipped, and its gradient is finite now")

    def batches(self, epoch: int, first: int = 0) -> Iterator[tuple[int, Batch]]:
        """The number of batches in an epoch, with each of them from number ``first`` on. The objective's
        buffers are brought up to date where it is due: a batch's step must be done before the next is taken.
        """
        every, number = self.settings.objective.refresh_steps or sys.maxsize, first
        while True:  # the loader runs ahead within a part of the epoch that one state of the buffers plans
            if number % every == 0:  # elsewhere the checkpoint has what the part began with
                asked = self.trainer.buffers, self.tuning_set.training, self._corpus.labels, self._vectors
                self.settings.objective.refresh_(*asked)
            count, loaded = self.loader.epoch(epoch, number, number + every - number % every)
            for batch in self.table.ahead(loaded, lambda batch: batch.bags.ids):
                number += 1
                yield count, batch
            if number >= count:
                return

    def _by_learners(
        self, swarm: Swarm, batches: int, checkpointer: Checkpointer | MemoryCheckpointer
    ) -> int:
        """The same by learners in processes of their own."""
        position = self.position
        asked = position.epoch, position.batch, batches, self.settings.save_seconds
        try:
            for losses, self._of_learners in swarm.show(*asked):
                for loss in losses:  # one after the other, so that a resumed run has the same sum
                    position.loss += loss
                position.batch += len(losses)
                if position.batch < batches:
                    checkpointer.save(self.trainer, position)
        except NonFiniteGradient as error:
            raise Diverged(self._explain(error)) from error
        return int(self._of_learners.pop("shown"))

    def _vectors(self) -> torch.Tensor:
        """Of the titles that are trained on, as they air; a row that was not trained counts as it began."""
        rows, corpus = self.tuning_set.training, self._corpus
        dense = self.settings.encoder.dense(corpus.sentences[rows], corpus.descriptions[rows])
        return self.trainer.vectors(corpus.tokens.take(rows), Bagger(corpus.kinds), dense, untrained=True)

    def _explain(self, error: NonFiniteGradient) -> str:
        rows, file = error.rows[:3], self.corpus_folder / "token_names.parquet"
        names = [f"{'token' if error.name == 'rows' else error.name} {row}" for row in rows]
        if error.name == "rows" and file.exists():  # "the ngram '<har' (token 17)"
            tokens = zip(names, pq.read_table(file).take(rows).to_pylist(), strict=True)
            names = [f"the {token['kind']} {token['token']!r} ({name})" for name, token in tokens]
        names += [f"{len(error.rows) - 3} others"] if len(error.rows) > 3 else []
        return (
            f"non-finite gradient for {', '.join(names)} in step {self.trainer.steps} (epoch "
            f"{self.position.epoch + 1}); the step was refused, all rows are as before it. Lower train."
            f"optimizer.learning_rate (now {self.settings.optimizer.learning_rate:g}) or set train.clipping"
        )

    def _finish_epoch(self) -> None:
        """Scores the epoch and records what every run of these settings gives: not how fast it was."""
        position, settings = self.position, self.settings
        loss, rate = position.loss / position.batch, settings.optimizer.learning_rate
        advice = f"in epoch {position.epoch + 1}; lower train.optimizer.learning_rate (now {rate:g})"
        if not math.isfinite(loss):
            raise Diverged(f"the loss is {loss} {advice}")
        scores = self.tuning_set.score(self.trainer)
        if (cosine := scores["mean_cosine"]) > COLLAPSED:
            raise Diverged(f"all vectors are alike (mean cosine {cosine:.3f}) {advice}")
        first = self.history[0]["loss"] if self.history else loss
        if loss > GROWN * abs(first):
            raise Diverged(f"the loss rose from {first:.4f} to {loss:.4f} {advice}")
        rate *= settings.schedule.factor(position.epoch / settings.epochs)
        self.history.append({"loss": loss, "learning_rate": rate, **scores})
        position.epoch, position.batch, position.loss = position.epoch + 1, 0, 0.0
        best = self.history[position.best - 1] if position.best else {}
        if scores.get("tuning_score", math.inf) > best.get("tuning_score", -math.inf):
            position.best = position.epoch

    def _stopped(self) -> str:
        """Why training ends before its last epoch; "" where it goes on."""
        best, patience = self.position.best, self.settings.patience
        text = f"no better tuning score for {patience} epochs; epoch {best} is kept"
        return text if patience and self.position.epoch - best >= patience else ""


def describe(progress: Progress) -> str:
    """An epoch in a line: "epoch 2 of 6: loss 0.1234, 51234 titles/s; why it ends here"."""
    known = progress.metrics
    numbers = ", ".join(text.format(known[name]) for name, text in _FORMATS.items() if name in known)
    return f"epoch {progress.step} of {progress.total}: {'; '.join(filter(None, (numbers, progress.note)))}"
