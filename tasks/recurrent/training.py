"""Trains a character encoder, and the parameters of its loss, on batches of strings.

A step updates the embeddings of the characters in its batch, and all parameters of the cell and of the loss.
Parameter groups may assign different optimizers to parameters by name, such as "characters", "weight_hh_l0"
and "head.weight". Random numbers depend on (seed, epoch), so that a run that is resumed after an epoch has
bitwise the same result as an uninterrupted one.

    training = RecurrentTraining(encoder, strings, batches, loss, settings, head=nn.Linear(128, classes))
    for progress in training.run():
        ...
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from storage.arrays import Ragged
from storage.artifacts import Progress
from storage.lazy import Tensor, torch
from tasks.form import configurable, setting
from tasks.optimizers import Adam, Optimizer
from tasks.optimizers.base import ParameterUpdate
from tasks.optimizers.parameter_groups import DenseParameters, ParameterGroups, UpdateSettings
from tasks.optimizers.schedules import Linear, Schedule
from tasks.recurrent.encoder import CharacterEncoder

CHARACTERS = "characters"  # name of the character embeddings in parameter groups and checkpoints
Batch = tuple[np.ndarray, Any]
"""Numbers of the strings in a batch, int64 (bags,), and their targets for the loss."""


@configurable
class RecurrentTrainingSettings(UpdateSettings):
    """Settings of the training of a character encoder."""

    optimizer: Optimizer = setting(
        Adam(learning_rate=0.003), "How character embeddings and parameters are updated"
    )
    schedule: Schedule = setting(Linear(), "How the learning rate changes during training")
    epochs: int = setting(10, "Number of epochs; an epoch shows every training string", ge=1, le=10_000)
    batch_size: int = setting(256, "Number of strings in a batch", ge=2)
    seed: int = setting(1, "Seed of all random numbers", ge=0)


class RecurrentTraining:
    """Training run of a character encoder, which can be saved and restored between epochs."""

    def __init__(
        self,
        encoder: CharacterEncoder,
        strings: Ragged,
        batches: Callable[[np.random.Generator], Iterable[Batch]],
        loss: Callable[[Tensor, Any], Tensor],
        settings: RecurrentTrainingSettings,
        *,
        head: "torch.nn.Module | None" = None,
    ) -> None:
        """Prepares a training, which ``run`` performs.

        Args:
            encoder: Encoder to train in place, on its device.
            strings: Character ids of all training strings, from ``encoder.alphabet.ids``.
            batches: Draws the batches of an epoch with a random generator.
            loss: Maps the vectors of a batch, float32 (bags, hidden), and its targets to a scalar.
            settings: Optimizer, schedule and duration.
            head: Module on the same device that the loss uses and that is also trained. The names of its
                parameters begin with ``head.``.
        """
        from storage.tables import Resident

        self.encoder, self.strings, self.settings = encoder, strings, settings
        self._batches, self._loss, self.epoch, self.steps = batches, loss, 0, 0
        dense_parameters = dict(encoder.cell.named_parameters())
        dense_parameters |= {
            f"head.{name}": parameter for name, parameter in (head.named_parameters() if head else ())
        }
        self.groups = ParameterGroups([CHARACTERS, *dense_parameters], settings)
        state = self.groups.updaters[CHARACTERS].initial_state(encoder.rows)
        self.table, self.dense = Resident(encoder.rows, state), DenseParameters(dense_parameters, self.groups)

    def run(self) -> Iterator[Progress]:
        """Trains the remaining epochs, and yields a Progress with the mean loss after each epoch."""
        while self.epoch < self.settings.epochs:
            rng = np.random.default_rng((self.settings.seed, self.epoch))
            dropout = torch.Generator().manual_seed(int(rng.integers(2**62)))
            batches = list(self._batches(rng))
            loss_sum = torch.zeros((), device=self.encoder.device)
            for number, (string_ids, targets) in enumerate(batches):
                fraction = (self.epoch + number / len(batches)) / self.settings.epochs
                loss_sum += self._step(string_ids, targets, self.settings.schedule.factor(fraction), dropout)
            self.epoch += 1
            yield Progress(self.epoch, self.settings.epochs, {"loss": loss_sum.item() / max(1, len(batches))})

    def _step(
        self, string_ids: np.ndarray, targets: Any, factor: float, dropout: "torch.Generator"
    ) -> Tensor:
        """Trains on a batch, with learning rates multiplied by ``factor``, and returns the loss."""
        from storage.tables import update_rows

        strings = self.strings.take(string_ids)
        distinct_ids, row_indices = np.unique(strings.values, return_inverse=True)
        ids = torch.from_numpy(distinct_ids).to(self.encoder.device)
        self.steps += 1
        with update_rows(self.table, ids) as (rows, state):
            rows.requires_grad_()
            vectors = self.encoder.encode(rows, Ragged(strings.offsets, row_indices), dropout)
            loss = self._loss(vectors, targets)
            loss.backward()
            updates = self.dense.updates()
            if (grad := rows.grad) is not None:  # None if all strings are empty
                updates[CHARACTERS] = ParameterUpdate(rows.detach(), grad, state, table_rows=len(self.table))
            with torch.no_grad():
                self.groups.update_(updates, factor, self.steps)
        return loss.detach()

    def tensors(self) -> dict[str, Tensor]:
        """Returns the tensors to save in a checkpoint, by name.

        The caller must also save ``epoch`` and ``steps``, which ``restore`` requires.
        """
        table = {f"{CHARACTERS}.{name}": tensor for name, tensor in self.table.tensors().items()}
        return {**table, **self.dense.tensors(), **self.groups.tensors()}

    def restore(self, epoch: int, steps: int, tensors: Mapping[str, Tensor]) -> None:
        """Restores an earlier run with the same settings from its epoch, number of steps and tensors."""
        self.epoch, self.steps = epoch, steps
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])
