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
from tasks.train.early_stopping import COLLAPSE_COSINE, TuningSet
from tasks.train.runners import OneProcess
from tasks.train.runners.swarm import Swarm
from tasks.train.settings import TrainSettings
from tasks.train.step import Trainer

DIVERGENCE_RATIO = 1.5  # training has diverged if the loss exceeds this multiple of the first epoch's loss
_METRIC_FORMATS = {
    "loss": "loss {:.4f}",
    "tuning_score": "tuning score {:.4f}",
    "titles_per_second": "{:.0f} titles/s",
    "staleness": "staleness {:.2f}",
    "learners_replaced": "{:.0f} learners replaced",
}


def choose_device(name: str) -> torch.device:
    """Returns the torch device for a value of train.device; "auto" selects a GPU if there is one.

    Raises:
        ValueError: The value is invalid, or there is no GPU.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise ValueError(f"train.device is {name!r}; expected 'auto', 'cpu', 'cuda' or 'cuda:N'")
    if name != "cpu" and not torch.cuda.is_available():
        raise ValueError(f"train.device is {name!r}, but torch finds no CUDA device; use 'auto' or 'cpu'")
    return torch.device(name)


class Diverged(ArithmeticError):
    """Error: training diverged. A gradient was not finite, the loss rose, or the vectors collapsed."""


class Training:
    """Training run on a Corpus folder, which can be interrupted and resumed at any batch."""

    def __init__(self, corpus_folder: Path, settings: TrainSettings) -> None:
        self.settings, self.corpus_folder, self.position = settings, corpus_folder, Position()
        device, corpus = choose_device(settings.device), open_corpus(corpus_folder)
        validation_share = settings.tuning_share if settings.patience else 0.0
        self.tuning_set = TuningSet(corpus, validation_share)
        title_ids = self.tuning_set.training
        if (count := len(title_ids)) < 2:
            raise ValueError(f"the corpus has {count} labelled training titles; at least two are needed")
        self.trainer = Trainer(corpus, settings, device)
        self.table, buffers, pin = self.trainer.table, self.trainer.buffers, device.type == "cuda"
        self.loader = open_batches(corpus, settings, title_ids, buffers, workers=settings.workers, pin=pin)
        self._corpus, self.swarm, runner = corpus, None, settings.runner
        if not isinstance(runner, OneProcess):
            self.swarm = Swarm(runner, self.trainer, corpus_folder, title_ids, self.loader)
        self._learner_metrics: dict[str, float] = {}  # metrics of the last epoch; empty with one process

    @property
    def history(self) -> list[dict[str, float]]:
        """Metrics of each finished epoch, by name."""
        return self.position.history

    def resume(self, checkpointer: Checkpointer) -> None:
        """Restores the state and the position of the last checkpoint, if there is one.

        Raises:
            ValueError: The checkpoint was written with other settings or another corpus.
        """
        self.position = checkpointer.resume(self.trainer)

    def run(self, checkpointer: Checkpointer | MemoryCheckpointer | None = None) -> Iterator[Progress]:
        """Trains the remaining epochs, yields a Progress after each, and restores the best epoch at the end.

        If training diverges after the first epoch, it ends, and the best epoch is restored.

        Raises:
            Diverged: Training diverged in the first epoch.
        """
        try:
            yield from self._train_epochs(checkpointer or MemoryCheckpointer())
        finally:
            if self.swarm:
                self.swarm.close()

    def _train_epochs(self, checkpointer: Checkpointer | MemoryCheckpointer) -> Iterator[Progress]:
        position, epochs = self.position, self.settings.epochs
        while position.epoch < epochs and not self._stop_reason():
            started, title_count, failure, threads = time.perf_counter(), 0, "", torch.get_num_threads()
            torch.set_num_threads(self.settings.threads or threads)
            try:
                title_count = self._train_epoch(checkpointer)
                self._finish_epoch()
            except Diverged as error:
                if not position.best:
                    raise
                failure = f"{error}; epoch {position.best} is kept"
            finally:
                torch.set_num_threads(threads)
            if failure:
                checkpointer.restore_best(self.trainer)
                yield Progress(position.epoch, epochs, note=failure)
                return
            checkpointer.save(self.trainer, position)
            if position.best == position.epoch:
                checkpointer.mark_best(self.trainer)
            metrics = {**self.history[-1], "titles_per_second": title_count / (time.perf_counter() - started)}
            metrics |= self._learner_metrics
            yield Progress(position.epoch, epochs, metrics, self._stop_reason())
        if position.best != position.epoch:
            checkpointer.restore_best(self.trainer)

    def _train_epoch(self, checkpointer: Checkpointer | MemoryCheckpointer) -> int:
        """Trains on the remaining batches of the epoch and returns the number of titles in these batches."""
        position, settings, saved_at = self.position, self.settings, time.monotonic()
        title_count = skipped_steps = 0
        if self.swarm:
            batch_count = self.loader.epoch(position.epoch, position.batch)[0]
            return self._train_epoch_by_learners(self.swarm, batch_count, checkpointer)
        self.trainer.defers_check = True
        # The sum of the losses stays on the device, because .item() would synchronize in every step.
        loss = torch.tensor(position.loss, dtype=torch.float64, device=self.trainer.device)
        for batch_count, batch in self.batches(position.epoch, position.batch):
            try:
                factor = settings.rate_factor(position.epoch, position.batch, batch_count)
                loss += self.trainer.step(batch, factor)
            except NonFiniteGradient as error:
                raise Diverged(self._gradient_message(error)) from error
            position.batch += 1
            title_count += len(batch.bags.offsets) - 1
            if time.monotonic() - saved_at >= settings.save_seconds and position.batch < batch_count:
                if skipped_steps := self.trainer.pop_skipped_steps():
                    break
                position.loss = loss.item()
                checkpointer.save(self.trainer, position)
                saved_at = time.monotonic()
        if skipped_steps := skipped_steps or self.trainer.pop_skipped_steps():
            self._repeat_skipped_step(position.batch - skipped_steps)
        position.loss = loss.item()
        return title_count

    def _repeat_skipped_step(self, batch_number: int) -> None:
        """Repeats the first skipped step, on batch ``batch_number``, to name the non-finite gradient.

        Raises:
            Diverged: A gradient of the step is not finite.
            RuntimeError: All gradients are finite when the step is repeated.
        """
        self.trainer.defers_check = False
        batch_count, batches = self.loader.epoch(self.position.epoch, batch_number)
        try:
            factor = self.settings.rate_factor(self.position.epoch, batch_number, batch_count)
            self.trainer.step(next(batches), factor)
        except NonFiniteGradient as error:
            raise Diverged(self._gradient_message(error)) from error
        raise RuntimeError(f"step {self.trainer.steps} was skipped, but its gradient is finite if repeated")

    def batches(self, epoch: int, first_batch: int = 0) -> Iterator[tuple[int, Batch]]:
        """Yields (number of batches in the epoch, batch) for each batch, starting with batch ``first_batch``.

        The caller must finish the training step of a batch before it requests the next batch.
        """
        if not first_batch:  # a run that is resumed within an epoch uses the buffers of its checkpoint
            title_ids, labels = self.tuning_set.training, self._corpus.labels
            self.settings.objective.refresh_(self.trainer.buffers, title_ids, labels, self._training_vectors)
        batch_count, loaded_batches = self.loader.epoch(epoch, first_batch)
        for batch in self.table.prefetch(loaded_batches, lambda batch: batch.bags.ids):
            yield batch_count, batch

    def _train_epoch_by_learners(
        self, swarm: Swarm, batches: int, checkpointer: Checkpointer | MemoryCheckpointer
    ) -> int:
        """Trains on the remaining batches of the epoch in learner processes; returns the number of titles."""
        position, save_seconds = self.position, self.settings.save_seconds
        try:
            for losses, self._learner_metrics in swarm.run_epoch(
                position.epoch, position.batch, batches, save_seconds
            ):
                for loss in losses:  # added in order, so that a resumed run computes the same sum
                    position.loss += loss
                position.batch += len(losses)
                if position.batch < batches:
                    checkpointer.save(self.trainer, position)
        except NonFiniteGradient as error:
            raise Diverged(self._gradient_message(error)) from error
        return int(self._learner_metrics.pop("shown"))

    def _training_vectors(self) -> torch.Tensor:
        """Returns the current vectors of the training titles, with their context tokens (channel, hour …)."""
        ids, corpus = self.tuning_set.training, self._corpus
        sentence_features = self.settings.encoder.sentence_features(
            corpus.sentences[ids], corpus.descriptions[ids]
        )
        tokens, bagger = corpus.tokens.take(ids), Bagger(corpus.kinds)
        return self.trainer.vectors(tokens, bagger, sentence_features, untrained=True)

    def _gradient_message(self, error: NonFiniteGradient) -> str:
        """Returns an error message that names up to three tokens or rows with a non-finite gradient."""
        rows, file = error.rows[:3], self.corpus_folder / "token_names.parquet"
        names = [f"{'token' if error.name == 'rows' else error.name} {row}" for row in rows]
        if error.name == "rows" and file.exists():  # names such as "the ngram '<har' (token 17)"
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
            Diverged: The loss is not finite, the loss has risen, or all vectors are nearly equal.
        """
        position, settings = self.position, self.settings
        loss, rate = position.loss / position.batch, settings.optimizer.learning_rate
        advice = f"in epoch {position.epoch + 1}; lower train.optimizer.learning_rate (now {rate:g})"
        if not math.isfinite(loss):
            raise Diverged(f"the loss is {loss} {advice}")
        scores = self.tuning_set.score(self.trainer)
        if (cosine := scores["mean_cosine"]) > COLLAPSE_COSINE:
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
        """Returns the reason why training stops before its last epoch; "" if it continues."""
        best, patience = self.position.best, self.settings.patience
        if patience and self.position.epoch - best >= patience:
            return f"no better tuning score for {patience} epochs; epoch {best} is kept"
        return ""


def format_progress(progress: Progress) -> str:
    """Formats the progress after an epoch: "epoch 2 of 6: loss 0.1234, 51234 titles/s; note"."""
    metrics = progress.metrics
    metric_texts = [text.format(metrics[name]) for name, text in _METRIC_FORMATS.items() if name in metrics]
    text = "; ".join(filter(None, (", ".join(metric_texts), progress.note)))
    return f"epoch {progress.step} of {progress.total}: {text}"
