"""Trains a character encoder, and what its loss adds, from batches of strings.

Character rows are a table of which a step updates those of its batch; the cell's parameters, and the loss's, are
dense. All are updated by one ``ParameterGroups``: one optimizer, or groups by name ("characters", "weight_hh_l0",
"head.weight"). Randomness belongs to (seed, epoch), so a run that is resumed after an epoch gives the same bits.

    training = RecurrentTraining(encoder, strings, batches, loss, settings, head=nn.Linear(128, classes))
    for progress in training.run():
        ...
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from storage.arrays import Ragged
from storage.artifacts import Progress
from storage.tables import Resident
from tasks.form import configurable, setting
from tasks.optimizers import Adam, Optimizer
from tasks.optimizers.base import ParameterUpdate
from tasks.optimizers.parameter_groups import DenseParameters, ParameterGroups, UpdateSettings
from tasks.optimizers.schedules import Linear, Schedule
from tasks.recurrent.encoder import CharacterEncoder

CHARACTERS = "characters"
Batch = tuple[np.ndarray, Any]
"""Numbers of the strings, int64 (bags,), and what the loss has to know of them."""


@configurable
class RecurrentTrainingSettings(UpdateSettings):
    """How a character encoder is trained, and for how long."""

    optimizer: Optimizer = setting(Adam(learning_rate=0.003), "How rows and parameters move")
    schedule: Schedule = setting(Linear(), "How the learning rate changes during training")
    epochs: int = setting(10, "How often the training strings are shown", ge=1, le=10_000)
    batch_size: int = setting(256, "Strings of a batch", ge=2)
    seed: int = setting(1, "Of everything drawn by chance", ge=0)


class RecurrentTraining:
    """A training run that can be saved and restored between epochs."""

    def __init__(
        self,
        encoder: CharacterEncoder,
        strings: Ragged,
        batches: Callable[[np.random.Generator], Iterable[Batch]],
        loss: Callable[[Tensor, Any], Tensor],
        settings: RecurrentTrainingSettings,
        *,
        head: nn.Module | None = None,
    ) -> None:
        """Nothing is trained yet.

        Args:
            encoder: Trained in place, on its device.
            strings: Character ids of all training strings, by ``encoder.alphabet.ids``.
            batches: The batches of an epoch, drawn by the generator.
            loss: Of vectors, float32 (bags, hidden), and what the batch says of them: a number to minimise.
            settings: How parameters move, and for how long.
            head: What else the loss learns, on the same device; its parameters are named ``head.NAME``.
        """
        self.encoder, self.strings, self.settings = encoder, strings, settings
        self._batches, self._loss, self.epoch, self.steps = batches, loss, 0, 0
        dense = dict(encoder.cell.named_parameters())
        dense |= {f"head.{name}": own for name, own in (head.named_parameters() if head else ())}
        self.groups = ParameterGroups([CHARACTERS, *dense], settings)
        state = self.groups.updaters[CHARACTERS].initial_state(encoder.rows)
        self.table, self.dense = Resident(encoder.rows, state), DenseParameters(dense, self.groups)

    def run(self) -> Iterator[Progress]:
        """Trains the remaining epochs; a Progress with the mean loss after each."""
        while self.epoch < self.settings.epochs:
            rng = np.random.default_rng((self.settings.seed, self.epoch))
            dropout = torch.Generator().manual_seed(int(rng.integers(2**62)))
            batches = list(self._batches(rng))
            total = torch.zeros((), device=self.encoder.device)
            for number, (chosen, facts) in enumerate(batches):
                done = (self.epoch + number / len(batches)) / self.settings.epochs
                total += self._step(chosen, facts, self.settings.schedule.factor(done), dropout)
            self.epoch += 1
            yield Progress(self.epoch, self.settings.epochs, {"loss": total.item() / max(1, len(batches))})

    def _step(self, chosen: np.ndarray, facts: Any, factor: float, dropout: torch.Generator) -> Tensor:
        strings = self.strings.take(chosen)
        unique, places = np.unique(strings.values, return_inverse=True)
        ids = torch.from_numpy(unique).to(self.encoder.device)
        rows, state = self.table.gather(ids)
        rows.requires_grad_()
        vectors = self.encoder.encode(rows, Ragged(strings.offsets, places), dropout)
        loss = self._loss(vectors, facts)
        loss.backward()
        updates = self.dense.updates()
        moved = rows.detach()
        if rows.grad is not None:  # None where all strings are empty
            updates[CHARACTERS] = ParameterUpdate(moved, rows.grad, state, table_rows=len(self.table))
        self.steps += 1
        with torch.no_grad():
            self.groups.update_(updates, factor, self.steps)
            self.table.write_back(ids, moved, state)
        return loss.detach()

    def tensors(self) -> dict[str, Tensor]:
        """Everything that a checkpoint keeps beside ``epoch`` and ``steps``, by name."""
        table = {f"{CHARACTERS}.{name}": own for name, own in self.table.tensors().items()}
        return {**table, **self.dense.tensors(), **self.groups.tensors()}

    def restore(self, epoch: int, steps: int, tensors: Mapping[str, Tensor]) -> None:
        """Continues where a run of the same settings had these tensors."""
        self.epoch, self.steps = epoch, steps
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])
