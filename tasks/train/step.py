"""Training step: gathers the rows of a batch, computes gradients by autograd, and updates the rows.

``Trainer.step`` is the step of backend "torch"; tasks/train/compiled_step.py computes the same with backend
"compiled". tests/tasks/train/numpy_step.py explains a step in NumPy and is the reference of both.

The weight of a token multiplies the learning rate of its row. It does not multiply the gradient, because an
adaptive optimizer cancels constant factors on gradients. A step with a non-finite gradient changes nothing.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from storage.arrays import Ragged
from storage.formats.corpus import OpenCorpus
from storage.tables import Resident, Section, Table, as_section, random_rows, update_rows
from tasks.encoder.bag import LAYER
from tasks.encoder.bags import Bagger, encode_bags
from tasks.loading.loader import Batch
from tasks.optimizers.base import ParameterUpdate
from tasks.optimizers.deferred import DeferredCheck
from tasks.optimizers.parameter_groups import DenseParameters, NonFiniteGradient, ParameterGroups
from tasks.optimizers.tuners import NoTuner
from tasks.train.batches import first_batch_ids
from tasks.train.compiled_step import CompiledStep, choose_backend, max_title_tokens
from tasks.train.runners import OneProcess
from tasks.train.settings import TrainSettings

_CHUNK = 2048  # titles per call of the encoder outside training


class Trainer:
    """Parameters, optimizer state and number of steps of a training. ``step`` trains on one batch.

    Args:
        corpus: The opened corpus.
        settings: Settings of the run.
        device: Device of the training step.

    Raises:
        ValueError: The settings require a backend that does not support them.
    """

    def __init__(self, corpus: OpenCorpus, settings: TrainSettings, device: torch.device) -> None:
        self.settings, self.device, self._corpus = settings, device, corpus
        auto = settings.precision == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported()
        self._use_bfloat16 = auto or settings.precision == "bfloat16"  # in matrix products
        self.weights = torch.from_numpy(corpus.weights.copy()).unsqueeze(1).to(device)  # (tokens, 1)
        shapes = settings.objective.parameters(len(corpus.label_names), settings.dim)
        shapes |= settings.encoder.parameters(corpus.sentences.shape[1], settings.dim)
        self.groups = ParameterGroups(["rows", *shapes], settings)
        generator = torch.Generator().manual_seed(settings.seed)

        def draw(tensor: Tensor) -> Tensor:
            return tensor.normal_(generator=generator).mul_(settings.initial_std)

        rows = random_rows(len(corpus.kinds), settings.dim, settings.initial_std, generator)
        buffers = settings.objective.buffers(corpus, settings.dim)
        batch_ids = partial(first_batch_ids, corpus, settings, buffers)
        self.table: Table = settings.table.build(rows, self.groups.updaters["rows"], device, batch_ids)
        initial = {name: draw(torch.empty(shape)).to(device) for name, shape in shapes.items()}
        self.dense = DenseParameters({name: initial[name].requires_grad_() for name in initial}, self.groups)
        self.buffers = {name: tensor.to(device) for name, tensor in buffers.items()}
        deferrable = device.type == "cuda" and isinstance(settings.tuner, NoTuner) and not self.buffers
        self._deferred = DeferredCheck(self.groups) if deferrable else None
        self.defers = False  # whether the check for non-finite gradients is deferred, see ``step``
        self.touched = torch.zeros(len(corpus.kinds), dtype=torch.bool)  # whether the row occurred in a step
        self.steps = 0
        self._choose_backend()

    def _choose_backend(self, resumed: str = "") -> None:
        arguments = self.settings, self.groups, self.table, len(self._corpus.training), resumed
        self.backend, self.step_description = choose_backend(*arguments)
        self.compiled: CompiledStep | None = None
        if self.backend == "compiled" and isinstance(self.settings.runner, OneProcess):
            assert isinstance(self.table, Resident)
            tensors = self.table.tensors() | self.dense.tensors() | {"touched": self.touched}
            arguments = self.groups, tensors, self.weights, max_title_tokens(self._corpus)
            self.compiled = CompiledStep(self.settings, *arguments)

    def resume_with(self, backend: str) -> None:
        """Continues with the backend of a checkpoint.

        Raises:
            ValueError: The backend is not available, or differs from train.backend.
        """
        if backend != self.backend:
            self._choose_backend(backend)

    def step(self, batch: Batch, factor: float) -> Tensor:
        """Trains on one batch, with the learning rates multiplied by ``factor``, and returns the loss.

        If ``defers`` is set on a GPU, a non-finite gradient raises no error. Instead, this step and all later
        steps change nothing, and ``skipped`` returns their number.

        Raises:
            NonFiniteGradient: A gradient is not finite; nothing was updated. If the ``name`` of the error is
                "rows", its ``rows`` are token ids.
        """
        if self.compiled and (loss := self.compiled.step(batch, factor, self.steps + 1)) is not None:
            self.steps += 1
            return loss
        bags, ids = batch.bags.to(self.device), batch.bags.ids
        targets = type(batch.targets)(
            *(tensor.to(self.device, non_blocking=True) for tensor in batch.targets)
        )
        self.steps += 1
        self.touched.index_fill_(0, ids, True)
        with update_rows(self.table, bags.ids) as (rows, state):
            rows.requires_grad_()
            with torch.autocast(self.device.type, torch.bfloat16, self._use_bfloat16):
                vectors = encode_bags(self.settings.encoder, rows, bags, self.dense.parameters[LAYER])
                loss = self.settings.objective.loss(vectors, targets, self.dense.parameters | self.buffers)
            loss.backward()
            assert rows.grad is not None
            weights = self.weights.index_select(0, bags.ids)
            update = ParameterUpdate(rows.detach(), rows.grad, state, weights, table_rows=len(self.table))
            updater = self._deferred if self.defers and self._deferred else self.groups
            try:
                with torch.no_grad():
                    updater.update_({"rows": update, **self.dense.updates()}, factor, self.steps)
            except NonFiniteGradient as error:
                token_ids = ids[error.rows].tolist() if error.name == "rows" else error.rows
                raise NonFiniteGradient(error.name, token_ids) from error
        return loss.detach()

    def skipped(self) -> int:
        """Returns the number of steps without effect since the last call, and subtracts it from ``steps``.

        Waits for the GPU.
        """
        skipped = self._deferred.skipped() if self._deferred else 0
        self.steps -= skipped
        return skipped

    def vectors(
        self, tokens: Ragged, bagger: Bagger, dense: np.ndarray, *, untrained: bool = False
    ) -> Tensor:
        """Computes the vectors of titles with the current parameters.

        Args:
            tokens: Token ids of each title.
            bagger: Forms bags (token ids with weights) from the token ids.
            dense: Sentence features, (titles, features).
            untrained: Whether tokens whose rows occurred in no step contribute to the vectors.

        Returns:
            Unit vectors, float32 (titles, dim), on the CPU; zero for titles without tokens and features.
        """
        blocks, layer = [torch.zeros(0, self.settings.dim)], self.dense.parameters[LAYER]
        with torch.inference_mode():
            for start in range(0, len(tokens), _CHUNK):
                end = min(start + _CHUNK, len(tokens))
                chunk = tokens.between(start, end)
                is_trained = None if untrained else self.touched.numpy()[chunk.values]
                bags = bagger.bags(chunk, is_trained, dense[start:end])
                bags = bags.to(self.device)
                rows = self.table.gather(bags.ids)[0]
                blocks.append(encode_bags(self.settings.encoder, rows, bags, layer).cpu())
        return torch.cat(blocks)

    def parts(self) -> dict[str, Section]:
        """Returns all tensors that a checkpoint contains, by name."""
        return self.table.sections() | {name: as_section(tensor) for name, tensor in self._tensors().items()}

    def restore(self, read: Callable[[str], Any]) -> None:
        """Restores all tensors from a checkpoint; ``read(name)[start:stop]`` reads rows of a tensor."""
        self.table.restore(read)
        for name, tensor in self._tensors().items():
            tensor.copy_(read(name)[:])

    def _tensors(self) -> dict[str, Tensor]:
        buffers = {f"buffer.{name}": tensor for name, tensor in self.buffers.items()}
        return {"touched": self.touched, **buffers, **self.dense.tensors(), **self.groups.tensors()}
