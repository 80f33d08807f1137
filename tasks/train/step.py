"""Training step: gather rows, dense forward and backward pass, update, write back.

The weight of a token multiplies the step of its row, not its gradient, because a constant factor on the
gradient cancels in an adaptive optimizer. A step with a non-finite gradient is rejected before any write.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus
from storage.tables import Section, Table, as_section
from tasks.encoder.bags import LAYER, Bagger
from tasks.loading.loader import Batch
from tasks.optimizers.base import ParameterUpdate
from tasks.optimizers.deferred import DeferredCheck
from tasks.optimizers.parameter_groups import DenseParameters, NonFiniteGradient, ParameterGroups
from tasks.optimizers.tuners import NoTuner
from tasks.train.batches import first_batch_ids
from tasks.train.compiled_step import choose_step
from tasks.train.settings import TrainSettings

_CHUNK = 2048  # titles per call of the encoder outside training


class Trainer:
    """Parameters, optimizer state and step count; ``step`` applies one batch.

    Args:
        corpus: The opened corpus.
        settings: Settings of the run.
        device: Device of the training step.
        compiled: Whether to use the compiled step (tasks/train/compiled_step.py); None: where it is faster.
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
        self._use_bfloat16 = auto or settings.precision == "bfloat16"  # in matrix products
        self.weights = torch.from_numpy(corpus.weights.copy()).unsqueeze(1).to(device)  # (tokens, 1)
        shapes = settings.objective.parameters(len(corpus.label_names), settings.dim)
        shapes |= settings.encoder.parameters(corpus.sentences.shape[1], settings.dim)
        self.groups = ParameterGroups(["rows", *shapes], settings)
        generator = torch.Generator().manual_seed(settings.seed)

        def draw(tensor: Tensor) -> Tensor:
            return tensor.normal_(generator=generator).mul_(settings.initial_std)

        rows = draw(settings.table.allocate(len(corpus.kinds), settings.dim))
        buffers = settings.objective.buffers(corpus, settings.dim)
        batch_ids = partial(first_batch_ids, corpus, settings, buffers)
        self.table: Table = settings.table.build(rows, self.groups.updaters["rows"], device, batch_ids)
        initial = {name: draw(torch.empty(shape)).to(device) for name, shape in shapes.items()}
        self.dense = DenseParameters({name: initial[name].requires_grad_() for name in initial}, self.groups)
        self.buffers = {name: tensor.to(device) for name, tensor in buffers.items()}
        deferrable = device.type == "cuda" and isinstance(settings.tuner, NoTuner) and not self.buffers
        self._deferred = DeferredCheck(self.groups) if deferrable else None
        self.defers = False
        self.touched = torch.zeros(len(corpus.kinds), dtype=torch.bool)  # rows that occurred in a step
        self.steps = 0
        self.compiled, self.step_description = choose_step(self, corpus, compiled)

    def step(self, batch: Batch, factor: float) -> Tensor:
        """Performs one step with the learning rates multiplied by ``factor`` and returns the loss, a scalar.

        With ``defers``, a GPU does not raise: a non-finite gradient turns this and all later steps into
        no-ops, which ``skipped`` counts.

        Raises:
            NonFiniteGradient: Nothing was updated. For "rows", its rows are token ids.
        """
        if self.compiled and (loss := self.compiled.step(batch, factor, self.steps + 1)) is not None:
            self.steps += 1
            return loss
        bags, ids = batch.bags.to(self.device), batch.bags.ids
        targets = type(batch.groups)(*(tensor.to(self.device, non_blocking=True) for tensor in batch.groups))
        self.steps += 1
        self.touched.index_fill_(0, ids, True)
        rows, state = self.table.gather(bags.ids)
        rows.requires_grad_()
        with torch.autocast(self.device.type, torch.bfloat16, self._use_bfloat16):
            vectors = self.settings.encoder.encode(rows, bags, self.dense.parameters[LAYER])
            loss = self.settings.objective.loss(vectors, targets, self.dense.parameters | self.buffers)
        loss.backward()
        assert rows.grad is not None
        new_rows, weights = rows.detach(), self.weights.index_select(0, bags.ids)
        update = ParameterUpdate(new_rows, rows.grad, state, weights, table_rows=len(self.table))
        updates = {"rows": update, **self.dense.updates()}
        with torch.no_grad():
            try:
                updater = self._deferred if self.defers and self._deferred else self.groups
                updater.update_(updates, factor, self.steps)
            except NonFiniteGradient as error:
                rows = ids[error.rows].tolist() if error.name == "rows" else error.rows
                raise NonFiniteGradient(error.name, rows) from error
            self.table.write_back(bags.ids, new_rows, state)
        return loss.detach()

    def skipped(self) -> int:
        """Returns the number of steps skipped since the last call and subtracts them; synchronizes."""
        skipped = self._deferred.skipped() if self._deferred else 0
        self.steps -= skipped
        return skipped

    def vectors(
        self, tokens: Ragged, bagger: Bagger, dense: np.ndarray, *, untrained: bool = False
    ) -> Tensor:
        """Encodes titles from their touched rows (all rows if ``untrained``) and sentence features.

        ``dense`` are the features x, (titles, features). Returns unit vectors, float32 (titles, dim), on the
        CPU; they are zero for titles without tokens and features.
        """
        encoded, layer = [torch.zeros(0, self.settings.dim)], self.dense.parameters[LAYER]
        with torch.inference_mode():
            for start in range(0, len(tokens), _CHUNK):
                end = min(start + _CHUNK, len(tokens))
                chunk = tokens.between(start, end)
                keep = None if untrained else self.touched.numpy()[chunk.values]
                bags = bagger.bags(chunk, keep, dense[start:end])
                bags = bags.to(self.device)
                rows = self.table.gather(bags.ids)[0]
                encoded.append(self.settings.encoder.encode(rows, bags, layer).cpu())
        return torch.cat(encoded)

    def parts(self) -> dict[str, Section]:
        """Returns all tensors of a checkpoint by name."""
        return self.table.sections() | {name: as_section(tensor) for name, tensor in self._tensors().items()}

    def restore(self, read: Callable[[str], Any]) -> None:
        """Restores all tensors from a checkpoint; ``read(name)[start:stop]`` returns rows of a tensor."""
        self.table.restore(read)
        for name, tensor in self._tensors().items():
            tensor.copy_(read(name)[:])

    def _tensors(self) -> dict[str, Tensor]:
        buffers = {f"buffer.{name}": tensor for name, tensor in self.buffers.items()}
        return {"touched": self.touched, **buffers, **self.dense.tensors(), **self.groups.tensors()}
