"""The one mechanism of training: gather rows, dense step, write back.

    ids of the batch ─▶ table.gather ─▶ rows, a dense leaf ─▶ encoder ─▶ objective ─▶ backward
    rule.update_(rows, grad, state, lr · weight[ids]) ─▶ table.write_back

The weight multiplies the row's step, not its gradient: in an adaptive rule a constant factor on the gradient cancels.
The learning rate falls linearly to zero. One process and one seed give the same bits, also across a resume: chance
belongs to (seed, epoch, batch), and a checkpoint at an epoch's end holds rows, state, step and history.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from storage.artifacts import Progress
from storage.tables import Resident, Table
from tasks.preprocess.corpus import open_corpus
from tasks.preprocess.loader import Batch, BatchLoader
from tasks.train.settings import TrainSettings


class Diverged(ArithmeticError):
    """Training produced numbers that are none."""


def choose_device(name: str) -> torch.device:
    """The device that a setting names; "auto" is the GPU where there is one.

    Raises:
        ValueError: No such device, or a CUDA device is asked for and there is none.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise ValueError(f"train.device is {name!r}; it can be 'auto', 'cpu', 'cuda' or 'cuda:N'")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"train.device is {name!r}, but torch sees no CUDA device here; use 'auto' or 'cpu'")
    return device


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Torch with that many CPU threads (0: as it is); what was set before comes back."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Training:
    """A training run that can be interrupted between epochs.

    Args:
        corpus_folder: Of a Corpus.
        settings: What to do.
    """

    def __init__(self, corpus_folder: Path, settings: TrainSettings) -> None:
        self.settings = settings
        self.device = choose_device(settings.device)
        corpus = open_corpus(corpus_folder)
        self.titles_per_epoch = len(corpus.training)
        if self.titles_per_epoch < 2:
            raise ValueError(f"the corpus has {self.titles_per_epoch} labelled training titles; two or more are needed")
        self.weights = torch.from_numpy(corpus.weights.copy()).unsqueeze(1).to(self.device)  # (tokens, 1)
        self.loader = BatchLoader(
            corpus_folder, settings.objective, dropout=settings.dropout, context_dropout=settings.context_dropout, seed=settings.seed, workers=settings.workers
        )
        generator = torch.Generator().manual_seed(settings.seed)
        rows = torch.randn(len(corpus.kinds), settings.dim, generator=generator).mul_(settings.start).to(self.device)
        self.table: Table = Resident(rows, settings.rule.initial_state(rows))
        self.touched = torch.zeros(len(rows), dtype=torch.bool)
        self.epoch, self.step = 0, 0
        self.history: list[dict[str, float]] = []

    def run(self) -> Iterator[Progress]:
        """Trains the epochs that are left; one Progress an epoch.

        Raises:
            Diverged: The loss is no number any more.
        """
        while self.epoch < self.settings.epochs:
            started = time.perf_counter()
            with _threads(self.settings.threads):
                loss = self._one_epoch()
            if not math.isfinite(loss):
                raise Diverged(f"the loss is {loss} in epoch {self.epoch + 1}; lower train.rule.learning_rate (now {self.settings.rule.learning_rate:g})")
            # What is kept is the same in every run; how fast it was is only told.
            self.history.append({"loss": loss, "learning_rate": self.settings.rule.learning_rate * (1 - self.epoch / self.settings.epochs)})
            self.epoch += 1
            speed = self.titles_per_epoch / (time.perf_counter() - started)
            yield Progress(self.epoch, self.settings.epochs, {**self.history[-1], "titles_per_second": speed})

    def _one_epoch(self) -> float:
        """Shows every title once; the mean loss of its batches."""
        losses = []
        batches, loaded = self.loader.epoch(self.epoch)
        for number, batch in enumerate(loaded):
            done = (self.epoch + number / batches) / self.settings.epochs
            losses.append(self._step(batch, self.settings.rule.learning_rate * (1 - done)))
        return torch.stack(losses).mean().item()

    def _step(self, batch: Batch, rate: float) -> torch.Tensor:
        """One gather, step and write-back; the batch's loss (a number on the device)."""
        bags = batch.bags.to(self.device)
        groups = type(batch.groups)(*(tensor.to(self.device) for tensor in batch.groups))
        self.step += 1
        self.touched[batch.bags.ids] = True
        rows, state = self.table.gather(bags.ids)
        rows.requires_grad_()
        loss = self.settings.objective.loss(self.settings.encoder.encode(rows, bags), groups)
        (grad,) = torch.autograd.grad(loss, rows)
        with torch.no_grad():
            rows = rows.detach()
            self.settings.rule.update_(rows, grad, state, self.weights.index_select(0, bags.ids) * rate, self.step)
            self.table.write_back(bags.ids, rows, state)
        return loss.detach()

    def save(self, file: Path) -> None:
        """Writes rows, state and history into one safetensors file, in one rename."""
        tensors = {name: tensor.cpu().contiguous() for name, tensor in self.table.tensors().items()}
        history = json.dumps({"epoch": self.epoch, "step": self.step, "history": self.history})
        temporary = file.with_name(file.name + ".tmp")
        save_file({**tensors, "touched": self.touched}, temporary, metadata={"history": history})
        os.replace(temporary, file)

    def load(self, file: Path) -> None:
        """Goes on where ``save`` stopped.

        Raises:
            ValueError: It was saved by another rule, or for another vocabulary or number of dimensions.
        """
        with safe_open(file, framework="pt", device=str(self.device)) as opened:
            content = json.loads(opened.metadata()["history"])
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  (no mapping: safe_open has keys() alone)
        touched = tensors.pop("touched").cpu()
        found, expected = ({name: tuple(tensor.shape) for name, tensor in some.items()} for some in (tensors, self.table.tensors()))
        if found != expected:
            raise ValueError(f"{file} holds {found}, this run needs {expected}: it was made with other settings or for another corpus. Name another place, or delete it")
        self.touched = touched
        self.table = Resident.from_tensors(tensors)
        self.epoch, self.step, self.history = content["epoch"], content["step"], content["history"]
