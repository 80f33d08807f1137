"""Training loop: epochs of steps, a validation score after each epoch, and early stopping.

With one process, the seed determines every bit of the result, even if the run is interrupted and resumed. All
random numbers depend on (seed, epoch, batch), so a checkpoint contains the number of the next batch instead
of the state of a random generator.
"""

import math
import re
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

DIVERGENCE_RATIO = 1.5  # training has diverged if the loss exceeds this multiple of the first epoch's loss
_FORMATS = {"loss": "loss {:.4f}", "tuning_score": "tuning score {:.4f}"}
_FORMATS |= {"titles_per_second": "{:.0f} titles/s", "staleness": "staleness {:.2f}"}
_FORMATS |= {"learners_replaced": "{:.0f} learners replaced"}


def choose_device(name: str) -> torch.device:
    """Returns the device of train.device; "auto" selects a GPU if there is one.

    Raises:
        ValueError: The device does not exist.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise ValueError(f"train.device is {name!r}; expected 'auto', 'cpu', 'cuda' or 'cuda:N'")
    if name != "cpu" and not torch.cuda.is_available():
        raise ValueError(f"train.device is {name!r}, but torch finds no CUDA device; use 'auto' or 'cpu'")
    return torch.device(name)


class Diverged(ArithmeticError):
    """Error: a gradient was not finite, the loss diverged, or the vectors collapsed."""


class Training:
    """Training run on a Corpus folder, which can be interrupted and resumed at any batch."""

    def __init__(self, corpus_folder: Path, settings: TrainSettings) -> None:
        self.settings, self.corpus_folder, self.position = settings, corpus_folder, Position()
        device, corpus = choose_device(settings.device), open_corpus(corpus_folder)
        validation_share = settings.tuning_share if settings.patience else 0.0
        self.tuning_set = TuningSet(corpus_folder, corpus, validation_share)
        if (titles := len(self.tuning_set.training)) < 2:
            raise ValueError(f"the corpus has {titles} labelled training titles; at least two are needed")
        self.trainer, training = Trainer(corpus, settings, device), self.tuning_set.training
        self.table, pin = self.trainer.table, device.type == "cuda"
        inputs = corpus_folder, corpus, settings, training, self.trainer.buffers
        self.loader = open_batches(*inputs, workers=settings.workers, pin=pin)
        self._corpus, self.swarm, runner = corpus, None, settings.runner
        if not isinstance(runner, OneProcess):
            self.swarm = Swarm(runner, self.trainer, corpus_folder, corpus, training, self.loader)
        self._learner_metrics: dict[str, float] = {}  # metrics of the last epoch; empty with one process

    @property
    def history(self) -> list[dict[str, float]]:
        """Metrics of each finished epoch."""
        return self.position.history

    def resume(self, checkpointer: Checkpointer) -> None:
        """Restores the last checkpoint of a run, if there is one.

        Raises:
            ValueError: The checkpoint was written with other settings or another corpus.
        """
        self.position = checkpointer.resume(self.trainer)

    def run(self, checkpointer: Checkpointer | MemoryCheckpointer | None = None) -> Iterator[Progress]:
        """Trains the remaining epochs, yields a Progress after each, and restores the best epoch at the end.

        Raises:
            Diverged: Training failed in the first epoch. A later failure ends training with the best epoch.
        """
        try:
            yield from self._epochs(checkpointer or MemoryCheckpointer())
        finally:
            if self.swarm:
                self.swarm.close()

    def _epochs(self, checkpointer: Checkpointer | MemoryCheckpointer) -> Iterator[Progress]:
        position, epochs = self.position, self.settings.epochs
        while position.epoch < epochs and not self._stop_reason():
            started, title_count, note, threads = time.perf_counter(), 0, "", torch.get_num_threads()
            torch.set_num_threads(self.settings.threads or threads)
            try:
                title_count = self._one_epoch(checkpointer)
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
            metrics = {**self.history[-1], "titles_per_second": title_count / (time.perf_counter() - started)}
            metrics |= self._learner_metrics
            yield Progress(position.epoch, epochs, metrics, self._stop_reason())
        if position.best != position.epoch:
            checkpointer.restore_best(self.trainer)

    def _one_epoch(self, checkpointer: Checkpointer | MemoryCheckpointer) -> int:
        """Trains on the remaining batches of the epoch and returns the number of titles in these batches."""
        position, settings, saved_at = self.position, self.settings, time.monotonic()
        title_count = skipped_steps = 0
        if self.swarm:
            batches = self.loader.epoch(position.epoch, position.batch)[0]
            return self._epoch_by_learners(self.swarm, batches, checkpointer)
        self.trainer.defers = True
        # The sum stays on the device: .item() would synchronize in every step.
        loss = torch.tensor(position.loss, dtype=torch.float64, device=self.trainer.device)
        for batches, batch in self.batches(position.epoch, position.batch):
            try:
                factor = settings.rate_factor(position.epoch, position.batch, batches)
                loss += self.trainer.step(batch, factor)
            except NonFiniteGradient as error:
                raise Diverged(self._explain(error)) from error
            position.batch += 1
            title_count += len(batch.bags.offsets) - 1
            if time.monotonic() - saved_at >= settings.save_seconds and position.batch < batches:
                if skipped_steps := self.trainer.skipped():
                    break
                position.loss = loss.item()
                checkpointer.save(self.trainer, position)
                saved_at = time.monotonic()
        if skipped_steps := skipped_steps or self.trainer.skipped():
            self._repeat_skipped_step(position.batch - skipped_steps)
        position.loss = loss.item()
        return title_count

    def _repeat_skipped_step(self, number: int) -> None:
        """Repeats the first skipped step, batch ``number`` of the epoch, to find the non-finite gradient.

        Raises:
            Diverged: A gradient of the step is not finite.
            RuntimeError: All gradients are finite this time.
        """
        self.trainer.defers = False
        count, batches = self.loader.epoch(self.position.epoch, number)
        try:
            self.trainer.step(next(batches), self.settings.rate_factor(self.position.epoch, number, count))
        except NonFiniteGradient as error:
            raise Diverged(self._explain(error)) from error
        raise RuntimeError(f"step {self.trainer.steps} was skipped, but its gradient is finite when repeated")

    def batches(self, epoch: int, first_batch: int = 0) -> Iterator[tuple[int, Batch]]:
        """Yields pairs (number of batches in the epoch, batch), starting with batch number ``first_batch``.

        The caller must finish the step of a batch before it requests the next batch.
        """
        if not first_batch:  # a run resumed within an epoch has the buffers of its checkpoint
            rows, labels = self.tuning_set.training, self._corpus.labels
            self.settings.objective.refresh_(self.trainer.buffers, rows, labels, self._vectors)
        count, loaded = self.loader.epoch(epoch, first_batch)
        for batch in self.table.prefetch(loaded, lambda batch: batch.bags.ids):
            yield count, batch

    def _epoch_by_learners(
        self, swarm: Swarm, batches: int, checkpointer: Checkpointer | MemoryCheckpointer
    ) -> int:
        """Trains on the remaining batches of the epoch in learner processes; returns the number of titles."""
        position = self.position
        arguments = position.epoch, position.batch, batches, self.settings.save_seconds
        try:
            for losses, self._learner_metrics in swarm.run_epoch(*arguments):
                for loss in losses:  # added one by one, so that a resumed run computes the same sum
                    position.loss += loss
                position.batch += len(losses)
                if position.batch < batches:
                    checkpointer.save(self.trainer, position)
        except NonFiniteGradient as error:
            raise Diverged(self._explain(error)) from error
        return int(self._learner_metrics.pop("shown"))

    def _vectors(self) -> torch.Tensor:
        """Returns the current vectors of the training titles, including context tokens (channel, hour …)."""
        rows, corpus = self.tuning_set.training, self._corpus
        dense = self.settings.encoder.dense(corpus.sentences[rows], corpus.descriptions[rows])
        return self.trainer.vectors(corpus.tokens.take(rows), Bagger(corpus.kinds), dense, untrained=True)

    def _explain(self, error: NonFiniteGradient) -> str:
        """Returns an error message that names up to three tokens or rows with a non-finite gradient."""
        rows, file = error.rows[:3], self.corpus_folder / "token_names.parquet"
        names = [f"{'token' if error.name == 'rows' else error.name} {row}" for row in rows]
        if error.name == "rows" and file.exists():  # for example "the ngram '<har' (token 17)"
            tokens = zip(names, pq.read_table(file).take(rows).to_pylist(), strict=True)
            names = [f"the {token['kind']} {token['token']!r} ({name})" for name, token in tokens]
        names += [f"{len(error.rows) - 3} others"] if len(error.rows) > 3 else []
        return (
            f"non-finite gradient for {', '.join(names)} in step {self.trainer.steps} (epoch "
            f"{self.position.epoch + 1}); the step changed nothing. Lower "
            f"train.optimizer.learning_rate (now {self.settings.optimizer.learning_rate:g}) "
            "or set train.clipping"
        )

    def _finish_epoch(self) -> None:
        """Computes the scores of a finished epoch and appends the metrics of the epoch to the history.

        Raises:
            Diverged: The loss is not finite or has risen, or all vectors are nearly equal.
        """
        position, settings = self.position, self.settings
        loss, rate = position.loss / position.batch, settings.optimizer.learning_rate
        advice = f"in epoch {position.epoch + 1}; lower train.optimizer.learning_rate (now {rate:g})"
        if not math.isfinite(loss):
            raise Diverged(f"the loss is {loss} {advice}")
        scores = self.tuning_set.score(self.trainer)
        if (cosine := scores["mean_cosine"]) > COLLAPSED:
            raise Diverged(f"the vectors have collapsed (mean cosine {cosine:.3f}) {advice}")
        first_loss = self.history[0]["loss"] if self.history else loss
        if loss > DIVERGENCE_RATIO * abs(first_loss):
            raise Diverged(f"the loss rose from {first_loss:.4f} to {loss:.4f} {advice}")
        factor = settings.rate_factor(position.epoch, position.batch - 1, position.batch)  # of the last step
        rate = self.trainer.groups.learning_rate * factor
        self.history.append({"loss": loss, "learning_rate": rate, **scores})
        position.epoch, position.batch, position.loss = position.epoch + 1, 0, 0.0
        best = self.history[position.best - 1] if position.best else {}
        if scores.get("tuning_score", math.inf) > best.get("tuning_score", -math.inf):
            position.best = position.epoch

    def _stop_reason(self) -> str:
        """Returns why training stops before its last epoch; "" if it continues."""
        best, patience = self.position.best, self.settings.patience
        text = f"no better tuning score for {patience} epochs; epoch {best} is kept"
        return text if patience and self.position.epoch - best >= patience else ""


def describe(progress: Progress) -> str:
    """Formats the progress after an epoch: "epoch 2 of 6: loss 0.1234, 51234 titles/s; note"."""
    metrics = progress.metrics
    figures = ", ".join(text.format(metrics[name]) for name, text in _FORMATS.items() if name in metrics)
    return f"epoch {progress.step} of {progress.total}: {'; '.join(filter(None, (figures, progress.note)))}"
