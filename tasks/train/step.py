"""The one mechanism of training: gather rows, dense step, write back.

    ids of the batch ─▶ table.gather ─▶ rows, a dense leaf ─▶ encoder ─▶ objective ─▶ backward
    rule.update_(rows, grad, state, lr · weight[ids]) ─▶ table.write_back

The weight multiplies the row's step, not its gradient: in an adaptive rule a constant factor on the gradient cancels.
Parameters that every step touches (a label's vector) are small tables of their own, moved by the same optimizer. A step
whose gradient is no number is refused before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from storage.arrays import Ragged
from storage.tables import Resident, Table, streaming
from tasks.preprocess.bags import Bagger
from tasks.preprocess.corpus import OpenCorpus
from tasks.preprocess.loader import Batch
from tasks.train.devices import mixed_precision
from tasks.train.optimizer import NotFinite, Optimizer
from tasks.train.parts import Part
from tasks.train.settings import TrainSettings

_CHUNK = 2048  # titles encoded at once outside training


class RefusedStep(ArithmeticError):
    """A gradient is no number.

    Attributes:
        part: "rows", or the parameter's name.
        ids: Which of its rows: token ids where the part is "rows".
    """

    def __init__(self, part: str, ids: list[int]) -> None:
        super().__init__(f"the gradient of {part} is no number in rows {ids[:3]}")
        self.part, self.ids = part, ids


class Learner:
    """All that a step changes, and the step.

    Args:
        corpus: An open Corpus.
        settings: Of the train stage.
        device: Where it is computed.

    Raises:
        ValueError: A table that cannot be had.
    """

    def __init__(self, corpus: OpenCorpus, settings: TrainSettings, device: torch.device) -> None:
        self.settings, self.device = settings, device
        self.weights = torch.from_numpy(corpus.weights.copy()).unsqueeze(1).to(device)  # (tokens, 1)
        generator = torch.Generator().manual_seed(settings.seed)
        shapes = settings.objective.parameters(len(corpus.label_names), settings.dim)
        self.optimizer = Optimizer(
            ["rows", *shapes], rule=settings.rule, groups=settings.groups, clipping=settings.clipping, tuner=settings.tuner, per_row_steps=settings.per_row_steps
        )
        movers = self.optimizer.movers
        rows = self._start(settings.table.room(len(corpus.kinds), settings.dim), generator)
        self.table: Table = settings.table.build(rows, movers["rows"], device)
        starts = {name: self._start(torch.empty(shape), generator).to(device) for name, shape in shapes.items()}
        self.parameters = {name: Resident(rows, movers[name].initial_state(rows)) for name, rows in starts.items()}
        self.touched = torch.zeros(len(corpus.kinds), dtype=torch.bool)  # was trained
        self.steps = 0

    def _start(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        return rows.normal_(generator=generator).mul_(self.settings.start)

    def step(self, batch: Batch, factor: float) -> Tensor:
        """One gather, step and write-back.

        Args:
            batch: Titles, and what the objective needs to know of them.
            factor: On the learning rate of every rule: the schedule's.

        Returns:
            The batch's loss, a number on the device.

        Raises:
            RefusedStep: A gradient is no number; nothing has been moved.
        """
        bags = batch.bags.to(self.device)
        facts = type(batch.groups)(*(tensor.to(self.device, non_blocking=True) for tensor in batch.groups))
        self.steps += 1
        self.touched.index_fill_(0, batch.bags.ids, True)
        rows, state = self.table.gather(bags.ids)
        rows.requires_grad_()
        leaves = {name: parameter.rows.detach().requires_grad_() for name, parameter in self.parameters.items()}
        with mixed_precision(self.device, self.settings.precision):
            loss = self.settings.objective.loss(self.settings.encoder.encode(rows, bags), facts, leaves)
        grad, *grads = torch.autograd.grad(loss, [rows, *leaves.values()])
        with torch.no_grad():
            ids = bags.ids
            moved = {"rows": Part(rows.detach(), grad, state, self.weights.index_select(0, ids), len(self.table))}
            moved |= {name: Part(its.rows, grads[place], its.state) for place, (name, its) in enumerate(self.parameters.items())}
            try:
                self.optimizer.move_(moved, factor, self.steps)
            except NotFinite as error:
                raise RefusedStep(error.part, ids[error.rows].tolist() if error.part == "rows" else error.rows) from error
            self.table.write_back(ids, rows.detach(), state)
        return loss.detach()

    def vectors(self, tokens: Ragged, bagger: Bagger) -> Tensor:
        """Unit vectors of titles, by the rows that training has touched.

        Args:
            tokens: One row a title.
            bagger: Of the corpus.

        Returns:
            float32 (titles, dim), on the CPU; a title of which nothing was touched is a zero row.
        """
        parts = [torch.zeros(0, self.settings.dim)]
        with torch.inference_mode():
            for start in range(0, len(tokens), _CHUNK):
                offsets = tokens.offsets[start : min(start + _CHUNK, len(tokens)) + 1]
                chunk = Ragged(offsets - offsets[0], tokens.values[offsets[0] : offsets[-1]])
                bags = bagger.bags(chunk, self.touched.numpy()[chunk.values]).to(self.device)
                parts.append(self.settings.encoder.encode(self.table.gather(bags.ids)[0], bags).cpu())
        return torch.cat(parts)

    def parts(self) -> dict[str, streaming.Part]:
        """Everything a checkpoint keeps, by name: rows and state, ``labels.rows`` and so on of each parameter, touched."""
        found = dict(self.table.parts())
        for parameter, table in self.parameters.items():
            found |= {f"{parameter}.{name}": part for name, part in table.parts().items()}
        return found | {name: streaming.whole(tensor) for name, tensor in self._others().items()}

    def _others(self) -> dict[str, Tensor]:
        """What is kept beside tables: which rows are touched, and what a tuner remembers."""
        return {"touched": self.touched, **self.optimizer.tensors()}

    def restore(self, read: Callable[[str], Any]) -> None:
        """Takes everything from a checkpoint of the same shapes; ``read(name)[start:stop]`` are its rows."""
        self.table.restore(read)
        for parameter, table in self.parameters.items():
            table.restore(lambda name, parameter=parameter: read(f"{parameter}.{name}"))
        for name, tensor in self._others().items():
            tensor.copy_(read(name)[:])
