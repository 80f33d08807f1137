"""Training step: gathers the rows of a batch, computes gradients by autograd, and updates the rows.

``Trainer.step`` computes the step if the backend is "torch"; tasks/train/compiled_step.py computes it if the
backend is "compiled". tests/tasks/train/numpy_step.py explains the step in NumPy and is the reference of both
backends.

The weight of a token multiplies the learning rate of its row. It does not multiply the gradient, because an
adaptive optimizer cancels constant factors on gradients. A step with a non-finite gradient changes neither
parameters nor optimizer state.
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

_CHUNK_TITLES = 2048  # number of titles per call of the encoder outside training


class Trainer:
    """Stores the parameters and the optimizer state of a training run, and trains on one batch at a time.

    Args:
        corpus: The opened Corpus.
        settings: Settings of the run.
        device: Device that computes the training steps.

    Raises:
        ValueError: ``train.backend`` is a backend that does not support the other settings.
    """

    def __init__(self, corpus: OpenCorpus, settings: TrainSettings, device: torch.device) -> None:
        self.settings, self.device, self._corpus = settings, device, corpus
        self._use_bfloat16 = settings.precision == "bfloat16"  # in matrix products
        if settings.precision == "auto":
            self._use_bfloat16 = device.type == "cuda" and torch.cuda.is_bf16_supported()
        self.weights = torch.from_numpy(corpus.weights.copy()).unsqueeze(1).to(device)  # (tokens, 1)
        shapes = settings.objective.parameters(len(corpus.label_names), settings.dim)
        shapes |= settings.encoder.parameters(corpus.sentences.shape[1], settings.dim)
        self.groups = ParameterGroups(["rows", *shapes], settings)
        generator = torch.Generator().manual_seed(settings.seed)

        def draw_normal(shape: tuple[int, int]) -> Tensor:
            return torch.empty(shape).normal_(generator=generator).mul_(settings.initial_std)

        rows = random_rows(len(corpus.kinds), settings.dim, settings.initial_std, generator)
        buffers = settings.objective.buffers(corpus, settings.dim)
        batch_ids = partial(first_batch_ids, corpus, settings, buffers)
        self.table: Table = settings.table.build(rows, self.groups.updaters["rows"], device, batch_ids)
        dense_parameters = {
            name: draw_normal(shape).to(device).requires_grad_() for name, shape in shapes.items()
        }
        self.dense = DenseParameters(dense_parameters, self.groups)
        self.buffers = {name: tensor.to(device) for name, tensor in buffers.items()}
        can_defer = device.type == "cuda" and isinstance(settings.tuner, NoTuner) and not self.buffers
        self._deferred_check = DeferredCheck(self.groups) if can_defer else None
        self.defers_check = False  # whether the check for non-finite gradients is deferred, see ``step``
        self.touched = torch.zeros(len(corpus.kinds), dtype=torch.bool)  # rows that occurred in any step
        self.steps = 0
        self._choose_backend()

    def _choose_backend(self, resumed_backend: str = "") -> None:
        self.backend, self.step_description = choose_backend(
            self.settings, self.groups, self.table, len(self._corpus.training), resumed_backend
        )
        self.compiled: CompiledStep | None = None
        if self.backend == "compiled" and isinstance(self.settings.runner, OneProcess):
            assert isinstance(self.table, Resident)
            tensors = self.table.tensors() | self.dense.tensors() | {"touched": self.touched}
            max_tokens = max_title_tokens(self._corpus)
            self.compiled = CompiledStep(self.settings, self.groups, tensors, self.weights, max_tokens)

    def switch_backend(self, backend: str) -> None:
        """Switches to ``backend``, with which the checkpoint of the run was written.

        Raises:
            ValueError: The backend is not available, or differs from train.backend.
        """
        if backend != self.backend:
            self._choose_backend(backend)

    def step(self, batch: Batch, factor: float) -> Tensor:
        """Trains on one batch, with the learning rates multiplied by ``factor``, and returns the mean loss.

        If ``defers_check`` is set, a non-finite gradient on a GPU raises no error. Instead, this step and all
        later steps change nothing, and ``pop_skipped_steps`` returns the number of these steps.

        Raises:
            NonFiniteGradient: A gradient is not finite; parameters and optimizer state are unchanged, but
                ``steps`` and ``touched`` include the step. If the ``name`` of the error is "rows", its
                ``rows`` are token ids.
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
            updater = self._deferred_check if self.defers_check and self._deferred_check else self.groups
            try:
                with torch.no_grad():
                    updater.update_({"rows": update, **self.dense.updates()}, factor, self.steps)
            except NonFiniteGradient as error:
                token_ids = ids[error.rows].tolist() if error.name == "rows" else error.rows
                raise NonFiniteGradient(error.name, token_ids) from error
        return loss.detach()

    def pop_skipped_steps(self) -> int:
        """Returns the number of steps that were skipped since the last call, and subtracts it from ``steps``.

        A step is skipped if its gradient, or that of an earlier step, is not finite. Waits for the GPU.
        """
        skipped_steps = self._deferred_check.pop_skipped_steps() if self._deferred_check else 0
        self.steps -= skipped_steps
        return skipped_steps

    def vectors(
        self, tokens: Ragged, bagger: Bagger, sentence_features: np.ndarray, *, untrained: bool = False
    ) -> Tensor:
        """Computes the vectors of titles with the current parameters.

        Args:
            tokens: Token ids of each title.
            bagger: Forms bags (token ids with weights) from the token ids.
            sentence_features: Sentence features of each title, float32 (titles, features).
            untrained: Whether the vectors include tokens whose rows no step has updated.

        Returns:
            Unit vectors, float32 (titles, dim), on the CPU. A title that has neither tokens nor sentence
            features has a zero vector.
        """
        chunk_vectors, layer = [torch.zeros(0, self.settings.dim)], self.dense.parameters[LAYER]
        with torch.inference_mode():
            for start in range(0, len(tokens), _CHUNK_TITLES):
                end = min(start + _CHUNK_TITLES, len(tokens))
                chunk = tokens.between(start, end)
                is_trained = None if untrained else self.touched.numpy()[chunk.values]
                bags = bagger.bags(chunk, is_trained, sentence_features[start:end]).to(self.device)
                rows = self.table.gather(bags.ids)[0]
                chunk_vectors.append(encode_bags(self.settings.encoder, rows, bags, layer).cpu())
        return torch.cat(chunk_vectors)

    def sections(self) -> dict[str, Section]:
        """Returns all tensors that a checkpoint contains, as sections by name."""
        return self.table.sections() | {name: as_section(tensor) for name, tensor in self._tensors().items()}

    def restore(self, read: Callable[[str], Any]) -> None:
        """Restores all tensors from a checkpoint. ``read(name)[start:stop]`` reads rows of a tensor."""
        self.table.restore(read)
        for name, tensor in self._tensors().items():
            tensor.copy_(read(name)[:])

    def _tensors(self) -> dict[str, Tensor]:
        buffers = {f"buffer.{name}": tensor for name, tensor in self.buffers.items()}
        return {"touched": self.touched, **buffers, **self.dense.tensors(), **self.groups.tensors()}
