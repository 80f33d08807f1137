"""The training step: gather rows, dense forward and backward pass, update, write back.

A token's weight multiplies its row's step, not its gradient: in an adaptive optimizer a constant factor on
the gradient cancels. A step with a non-finite gradient is refused before anything is written.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus
from storage.tables import Section, Table, whole
from tasks.encoder.bags import LAYER, Bagger
from tasks.loading.loader import Batch
from tasks.optimizers.base import ParameterUpdate
from tasks.optimizers.deferred import DeferredCheck
from tasks.optimizers.parameter_groups import DenseParameters, NonFiniteGradient, ParameterGroups
from tasks.optimizers.tuners import NoTuner
from tasks.train.batches import ids_of_a_batch
from tasks.train.compiled_step import choose_step
from tasks.train.settings import TrainSettings

_CHUNK = 2048  # titles encoded at once outside training


class Trainer:
    """Parameters, optimizer state and step count; ``step`` applies one batch.

    Args:
        corpus: Opened.
        settings: Of the run.
        device: That trains.
        compiled: Whether steps are machine code (tasks/train/compiled_step.py); None: where that is faster.
    """

    def __init__(
        self,
        corpus: OpenCorpus,
        settings: TrainSettings,
        device: torch.device,
        compiled: bool | None = None,
    ) -> None:
        self.settings, self.device = settings, device
        auto = settings.precision == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported()
        self._half = auto or settings.precision == "bfloat16"  # matrix products
        self.weights = torch.from_numpy(corpus.weights.copy()).unsqueeze(1).to(device)  # (tokens, 1)
        shapes = settings.objective.parameters(len(corpus.label_names), settings.dim)
        shapes |= settings.encoder.parameters(corpus.sentences.shape[1], settings.dim)
        self.groups = ParameterGroups(["rows", *shapes], settings)
        generator = torch.Generator().manual_seed(settings.seed)

        def draw(tensor: Tensor) -> Tensor:
            return tensor.normal_(generator=generator).mul_(settings.initial_std)

        rows = draw(settings.table.room(len(corpus.kinds), settings.dim))
        starts = settings.objective.buffers(corpus, settings.dim)
        batch = partial(ids_of_a_batch, corpus, settings, starts)
        self.table: Table = settings.table.build(rows, self.groups.updaters["rows"], device, batch)
        drawn = {name: draw(torch.empty(shape)).to(device) for name, shape in shapes.items()}
        self.dense = DenseParameters({name: drawn[name].requires_grad_() for name in drawn}, self.groups)
        self.buffers = {name: tensor.to(device) for name, tensor in starts.items()}
        deferrable = device.type == "cuda" and isinstance(settings.tuner, NoTuner) and not self.buffers
        self._deferred = DeferredCheck(self.groups) if deferrable else None
        self.defers = False
        self.touched = torch.zeros(len(corpus.kinds), dtype=torch.bool)  # rows that were trained
        self.steps = 0
        self.compiled, self.step_description = choose_step(self, corpus, compiled)

    def step(self, batch: Batch, factor: float) -> Tensor:
        """One step with learning rates times ``factor``; returns the loss, a number on the device. A
        NonFiniteGradient for "rows" has token ids; nothing was updated. With ``defers`` none is raised on a
        GPU, but from such a gradient on nothing is updated, and ``skipped`` tells.
        """
        if self.compiled and (loss := self.compiled.step(batch, factor, self.steps + 1)) is not None:
            self.steps += 1
            return loss
        bags, ids = batch.bags.to(self.device), batch.bags.ids
        facts = type(batch.groups)(*(tensor.to(self.device, non_blocking=True) for tensor in batch.groups))
        self.steps += 1
        self.touched.index_fill_(0, ids, True)
        rows, state = self.table.gather(bags.ids)
        rows.requires_grad_()
        with torch.autocast(self.device.type, torch.bfloat16, self._half):
            vectors = self.settings.encoder.encode(rows, bags, self.dense.parameters[LAYER])
            loss = self.settings.objective.loss(vectors, facts, self.dense.parameters | self.buffers)
        loss.backward()
        assert rows.grad is not None
        moved, weights = rows.detach(), self.weights.index_select(0, bags.ids)
        update = ParameterUpdate(moved, rows.grad, state, weights, table_rows=len(self.table))
        updates = {"rows": update, **self.dense.updates()}
        with torch.no_grad():
            try:
                updater = self._deferred if self.defers and self._deferred else self.groups
                updater.update_(updates, factor, self.steps)
            except NonFiniteGradient as error:
                rows = ids[error.rows].tolist() if error.name == "rows" else error.rows
                raise NonFiniteGradient(error.name, rows) from error
            self.table.write_back(bags.ids, moved, state)
        return loss.detach()

    def skipped(self) -> int:
        """Steps skipped since the last call, which then count as not made; waits for the device."""
        skipped = self._deferred.skipped() if self._deferred else 0
        self.steps -= skipped
        return skipped

    def vectors(
        self, tokens: Ragged, bagger: Bagger, dense: np.ndarray, *, untrained: bool = False
    ) -> Tensor:
        """Unit vectors of titles from touched rows (all rows, if ``untrained`` ones count, too) and from x,
        ``dense`` (titles, features); zeros without any: float32 (titles, dim), on the CPU.
        """
        found, layer = [torch.zeros(0, self.settings.dim)], self.dense.parameters[LAYER]
        with torch.inference_mode():
            for start in range(0, len(tokens), _CHUNK):
                end = min(start + _CHUNK, len(tokens))
                chunk = tokens.between(start, end)
                keep = None if untrained else self.touched.numpy()[chunk.values]
                bags = bagger.bags(chunk, keep, dense[start:end])
                bags = bags.to(self.device)
                found.append(self.settings.encoder.encode(self.table.gather(bags.ids)[0], bags, layer).cpu())
        return torch.cat(found)

    def parts(self) -> dict[str, Section]:
        """Everything a checkpoint keeps, by name."""
        return self.table.sections() | {name: whole(own) for name, own in self._others().items()}

    def restore(self, read: Callable[[str], Any]) -> None:
        """Takes everything from a checkpoint of the same shapes; ``read(name)[start:stop]`` are its rows."""
        self.table.restore(read)
        for name, tensor in self._others().items():
            tensor.copy_(read(name)[:])

    def _others(self) -> dict[str, Tensor]:
        buffers = {f"buffer.{name}": tensor for name, tensor in self.buffers.items()}
        return {"touched": self.touched, **buffers, **self.dense.tensors(), **self.groups.tensors()}
