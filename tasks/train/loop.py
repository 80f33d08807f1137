"""The loop: epochs of steps, a reading of the vectors after each, and an end when there is nothing more to win.

One process and one seed give the same bits, also across a resume, within an epoch too: chance belongs to (seed, epoch,
batch), so the place of the next batch is all a checkpoint needs beside rows, state and history.

A run ends early where the score of titles set aside has not risen for some epochs, where vectors have collapsed, where
the loss has grown, or where a gradient is no number any more. What is kept then is the best epoch, not the last.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from storage.artifacts import Progress
from storage.tables import Table
from tasks.preprocess.corpus import open_corpus
from tasks.preprocess.loader import BatchLoader
from tasks.train.checkpoint import Kept, KeptInMemory, KeptOnDisk, Position
from tasks.train.devices import choose_device, use_threads
from tasks.train.held_out import NOTHING_READ, HeldOut, Reading
from tasks.train.schedules import warmed
from tasks.train.settings import TrainSettings
from tasks.train.step import Learner, RefusedStep
from tasks.train.token_names import token_names

GROWN = 1.5  # a loss this many times the first epoch's is divergence


class Diverged(ArithmeticError):
    """Training produced numbers that are none, or vectors that are all alike, before any epoch was worth keeping."""


class Training:
    """A training run that can be interrupted at any batch.

    Args:
        corpus_folder: Of a Corpus.
        settings: What to do.

    Raises:
        ValueError: Fewer than two training titles, or a device that is not there.
    """

    def __init__(self, corpus_folder: Path, settings: TrainSettings) -> None:
        self.settings, self.corpus_folder = settings, corpus_folder
        device = choose_device(settings.device)
        corpus = open_corpus(corpus_folder)
        self.held_out = HeldOut(corpus_folder, corpus, settings.tuning_share if settings.patience else 0.0)
        self.titles_per_epoch = len(self.held_out.training)
        if self.titles_per_epoch < 2:
            raise ValueError(f"the corpus has {self.titles_per_epoch} labelled training titles; two or more are needed")
        self.loader = BatchLoader(
            corpus_folder,
            settings.objective,
            rows=self.held_out.training,
            order=settings.order,
            dropout=settings.dropout,
            context_dropout=settings.context_dropout,
            seed=settings.seed,
            workers=settings.workers,
            pin=device.type == "cuda",
        )
        self.learner = Learner(corpus, settings, device)
        self.position = Position()

    @property
    def table(self) -> Table:
        """The token rows."""
        return self.learner.table

    @property
    def history(self) -> list[dict[str, float]]:
        """What each finished epoch came to."""
        return self.position.history

    def resume(self, kept: KeptOnDisk) -> None:
        """Goes on where the run that wrote there stopped; starts where there was none.

        Raises:
            ValueError: What is there is of other settings, or for another vocabulary.
        """
        self.position = kept.resume(self.learner)

    def run(self, kept: Kept | None = None) -> Iterator[Progress]:
        """Trains the epochs that are left; one Progress an epoch. At its end the learner holds the best epoch.

        Args:
            kept: Where checkpoints are kept; in memory by default.

        Raises:
            Diverged: Not even the first epoch was worth keeping.
        """
        kept, position = kept or KeptInMemory(), self.position
        while position.epoch < self.settings.epochs and not self._enough():
            started = time.perf_counter()
            with use_threads(self.settings.threads):
                try:
                    shown = self._one_epoch(kept)
                    trouble, reading = self._judge()
                except RefusedStep as refused:
                    shown, trouble, reading = 0, self._explain(refused), NOTHING_READ
            if trouble and not position.best:
                raise Diverged(trouble)
            if trouble:
                kept.restore_best(self.learner)
                yield Progress(position.epoch, self.settings.epochs, note=f"{trouble}; epoch {position.best} is kept")
                return
            self._finish_epoch(reading)
            kept.save(self.learner, position)
            if position.best == position.epoch:
                kept.mark_best(self.learner)
            speed = shown / (time.perf_counter() - started)
            yield Progress(position.epoch, self.settings.epochs, {**self.history[-1], "titles_per_second": speed}, self._enough())
        if position.best != position.epoch:
            kept.restore_best(self.learner)

    def _one_epoch(self, kept: Kept) -> int:
        """Shows every title that is left of the epoch; how many."""
        position, shown, saved = self.position, 0, time.monotonic()
        batches, loaded = self.loader.epoch(position.epoch, position.batch)
        loss = torch.tensor(position.loss, dtype=torch.float64, device=self.learner.device)  # its sum stays on the device
        for batch in self.table.ahead(loaded, lambda batch: batch.bags.ids):
            done, after = ((position.epoch + part / batches) / self.settings.epochs for part in (position.batch, position.batch + 1))
            loss += self.learner.step(batch, warmed(self.settings.schedule, done, after, self.settings.warm_up))
            position.batch += 1
            shown += len(batch.bags.offsets) - 1
            if time.monotonic() - saved >= self.settings.save_seconds and position.batch < batches:
                position.loss = loss.item()
                kept.save(self.learner, position)
                saved = time.monotonic()
        position.loss = loss.item()
        return shown

    def _explain(self, refused: RefusedStep) -> str:
        """What to say of a step that was refused, of the tokens whose gradient is no number."""
        ids = refused.ids
        names = token_names(self.corpus_folder, ids[:3]) if refused.part == "rows" else [f"{refused.part} {number}" for number in ids[:3]]
        others = f" and of {len(ids) - 3} others" if len(ids) > 3 else ""
        return (
            f"the gradient of {', '.join(names)}{others} is no number in step {self.learner.steps} (epoch {self.position.epoch + 1}); "
            f"the step was refused, the rows are as before it. Lower train.rule.learning_rate (now {self.settings.rule.learning_rate:g}) or set train.clipping"
        )

    def _judge(self) -> tuple[str, Reading]:
        """What is wrong after an epoch ("" where nothing is), and the reading of its vectors."""
        epoch, loss = self.position.epoch + 1, self.position.loss / self.position.batch
        advice = f"lower train.rule.learning_rate (now {self.settings.rule.learning_rate:g})"
        if not math.isfinite(loss):
            return f"the loss is {loss} in epoch {epoch}; {advice}", NOTHING_READ
        reading = self.held_out.read(self.learner)
        if reading.collapsed:
            return f"{reading.collapsed} after epoch {epoch}; {advice}", reading
        first = self.history[0]["loss"] if self.history else loss
        if loss > GROWN * abs(first):
            return f"the loss rose from {first:.4f} to {loss:.4f} in epoch {epoch}; {advice}", reading
        return "", reading

    def _finish_epoch(self, reading: Reading) -> None:
        """Writes the epoch down, and whether it is the best so far. Kept is what every run of these settings gives, not how fast it was."""
        position = self.position
        entry = {"loss": position.loss / position.batch, "learning_rate": self.settings.rule.learning_rate * self.settings.schedule.factor(position.epoch / self.settings.epochs)}
        entry |= {"mean_cosine": reading.mean_cosine, "effective_rank": reading.effective_rank}
        best = reading.score is None or not position.best or reading.score > position.history[position.best - 1]["tuning_score"]
        if reading.score is not None:
            entry["tuning_score"] = reading.score
        position.history.append(entry)
        position.epoch, position.batch, position.loss = position.epoch + 1, 0, 0.0
        if best:
            position.best = position.epoch

    def _enough(self) -> str:
        """Why no further epoch is worth its time; "" where one is."""
        position, patience = self.position, self.settings.patience
        if not patience or position.epoch - position.best < patience:
            return ""
        return f"no better on titles set aside for {patience} epochs; epoch {position.best} is kept"


def tell(progress: Progress) -> str:
    """An epoch in a line: "epoch 2 of 6: loss 0.1234, 51234 titles/s; why it ends here"."""
    words = {"loss": "loss {:.4f}", "tuning_score": "{:.4f} on titles set aside", "titles_per_second": "{:.0f} titles/s"}
    numbers = ", ".join(text.format(progress.metrics[name]) for name, text in words.items() if name in progress.metrics)
    return f"epoch {progress.step} of {progress.total}: {'; '.join(part for part in (numbers, progress.note) if part)}"
