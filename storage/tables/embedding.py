"""``nn.Embedding`` for tables larger than GPU memory, for any PyTorch loop (example: docs/offload.md).

The rows are not parameters of the module, so a torch optimizer does not update them. Gradients of rows
accumulate until ``OffloadedEmbedding.step`` applies them or ``zero_grad`` discards them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar

import torch
from safetensors import safe_open
from torch import Tensor, distributed, nn

from storage.tables.eviction import DEFAULT_EVICTION, Eviction
from storage.tables.gradients import RowGradients
from storage.tables.offloaded import Offloaded
from storage.tables.prefetch import find_distinct_ids
from storage.tables.records import ROW_FIELD
from storage.tables.row_optimizer import FrozenOptimizer, RowOptimizer
from storage.tables.row_storage import affordable_rows
from storage.tables.segment_sums import take_rows
from storage.tables.streaming import Section, as_section, make_initial_rows, write_safetensors
from storage.tables.transfer import TransferKind
from storage.tables.updates import update_rows

BatchT = TypeVar("BatchT")


class OffloadedEmbedding(nn.Module):
    """Embedding whose rows and optimizer state are in host memory or a file, with a cache on the device.

    Args:
        num_embeddings: Number of rows. Assign small ids to frequent items, because the first rows are always
            cached, or set ``eviction``.
        cache_bytes: Device memory for cached rows and state; 0: four fifths of the free memory.
        cache_rows: Number of cached rows; 0: as many as fit into cache_bytes.
        start: Initial rows, float32 (num_embeddings, embedding_dim), as a tensor or a Section. A number is
            the standard deviation of normally distributed rows, which are drawn at random.
        seed: Seed of random initial rows and of stochastic rounding.
        padding_idx: Row without gradients, as in ``nn.Embedding``; it is zero unless ``start`` is a tensor.

    ``Offloaded`` documents the other arguments.

    Raises:
        ValueError: The cache is too small for one row, or the transfer is not available.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        optimizer: RowOptimizer,
        cache_bytes: int = 0,
        cache_rows: int = 0,
        device: torch.device | str | None = None,
        start: Tensor | Section | float = 1.0,
        seed: int = 0,
        padding_idx: int | None = None,
        lookahead: int = 2,
        row_dtype: torch.dtype = torch.float32,
        state_dtype: torch.dtype = torch.float32,
        transfer: TransferKind = "auto",
        folder: Path | None = None,
        batch: Tensor | None = None,
        eviction: Eviction = DEFAULT_EVICTION,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.optimizer = num_embeddings, embedding_dim, optimizer
        shape = num_embeddings, embedding_dim
        device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        dtypes = {"row_dtype": row_dtype, "state_dtype": state_dtype}
        zero_row = torch.zeros(1, embedding_dim)
        if not cache_rows:
            cache_rows = affordable_rows(num_embeddings, zero_row, optimizer, cache_bytes, device, **dtypes)
        rows = make_initial_rows(shape, start, seed)
        if rows.shape != shape:
            raise ValueError(f"start has shape {rows.shape}, expected {shape}")
        options = {"lookahead": lookahead, "transfer": transfer, "folder": folder, "seed": seed, **dtypes}
        options |= {"cache_rows": cache_rows, "batch": batch, "eviction": eviction}
        self.table = Offloaded(rows, optimizer, device=device, **options)
        self.padding_idx = None if padding_idx is None else range(num_embeddings)[padding_idx]
        if self.padding_idx is not None and not isinstance(start, Tensor):
            initial_state = optimizer.initial_state(zero_row)
            self.table.storage.fill(self.padding_idx, {ROW_FIELD: zero_row, **initial_state})
        self.steps, self.is_frozen = 0, False
        self.layout: Any = None  # JSON value that identifies the rows of the table; subclasses set it
        self._announced_ids: Tensor | None = None  # sorted ids of the batch of ``prefetch``, on the device
        self._announced_rows: Tensor | None = None  # rows of _announced_ids for all calls of ``forward``
        self._padding_position = -1  # position of padding_idx in the current rows; -1: none
        self._gradients = RowGradients()

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, *, optimizer: RowOptimizer | None = None, **options: Any
    ) -> Self:
        """Builds a module with the rows ``embeddings``.

        Args:
            embeddings: Initial rows, float32 (num_embeddings, embedding_dim).
            freeze: Whether the rows get no gradients, as by default in ``nn.Embedding``.
            optimizer: Optimizer of the rows; required if ``freeze`` is False.
            options: Other arguments of the constructor.

        Raises:
            ValueError: ``freeze`` is False without an optimizer.
        """
        if not freeze and optimizer is None:
            raise ValueError("from_pretrained(freeze=False) needs an optimizer; pass `optimizer`")
        row_optimizer = FrozenOptimizer() if freeze or optimizer is None else optimizer
        module = cls(*embeddings.shape, optimizer=row_optimizer, start=embeddings, **options)
        module.is_frozen = freeze
        return module

    def prefetch(
        self, batches: Iterable[BatchT], ids: Callable[[BatchT], Tensor | Sequence[Tensor]]
    ) -> Iterator[BatchT]:
        """Iterates over batches, and prefetches the rows of the next batches while a step runs.

        Args:
            batches: Batches of any type; a background thread reads them.
            ids: Function that returns the ids that the ``forward`` calls for a batch will use, as one or
                several integer tensors. ``step`` updates the rows of all these ids. An id that ``forward``
                does not use has a gradient of zero.

        Raises:
            RuntimeError: A batch begins before the gradients of earlier batches are applied or discarded.
        """
        batches_with_ids = ((batch, find_distinct_ids(ids(batch))) for batch in batches)
        try:
            for batch, distinct_ids in self.table.prefetch(batches_with_ids, lambda pair: pair[1]):
                if self._gradients:
                    problem = "a batch of `prefetch` begins before earlier gradients are applied or discarded"
                    remedy = "call `step` or `zero_grad` after each batch, or pass several batches as one"
                    raise RuntimeError(f"{problem}: {remedy} to accumulate their gradients")
                self._announced_rows, self._announced_ids = None, distinct_ids.to(self.table.device)
                self._padding_position = self._find_padding(distinct_ids)
                yield batch
        finally:
            self._announced_rows = self._announced_ids = None

    def forward(self, ids: Tensor) -> Tensor:
        """Returns the row of each id: (*ids.shape, embedding_dim), on the device.

        Raises:
            ValueError: In a loop over ``prefetch``, an id is not among those that the argument ``ids`` of
                ``prefetch`` returned for the batch (on a GPU: a device-side assertion).
        """
        ids = ids.to(self.table.device, torch.int64)
        vectors = take_rows(*self._gather_distinct_rows(ids))
        if self.padding_idx is None:
            return vectors
        return torch.where((ids == self.padding_idx).unsqueeze(-1), vectors.detach(), vectors)

    def _gather_distinct_rows(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the rows of the distinct ids, (unique, dim), and the position of each id in these rows."""
        if self._announced_ids is None:
            distinct_ids, positions = torch.unique(ids, return_inverse=True)
            self._padding_position = self._find_padding(distinct_ids)
            return self._gather_rows(distinct_ids), positions
        positions = torch.searchsorted(self._announced_ids, ids)
        self._check_announced(self._announced_ids, positions, ids)
        rows = (
            self._gather_rows(self._announced_ids) if self._announced_rows is None else self._announced_rows
        )
        self._announced_rows = rows if rows.requires_grad else None
        return rows, positions

    def _find_padding(self, distinct_ids: Tensor) -> int:
        if self.padding_idx is None:
            return -1
        position = (distinct_ids == self.padding_idx).nonzero()
        return int(position) if len(position) else -1

    def _gather_rows(self, ids: Tensor) -> Tensor:
        rows = self.table.gather(ids)[0]
        if torch.is_grad_enabled() and not self.is_frozen:
            self._gradients.track(ids, rows)
        return rows

    def _check_announced(self, distinct_ids: Tensor, positions: Tensor, ids: Tensor) -> None:
        all_announced = torch.tensor(ids.numel() == 0)
        if len(distinct_ids):
            all_announced = (distinct_ids[positions.clamp(max=len(distinct_ids) - 1)] == ids).all()
        if self.table.device.type == "cuda":  # synchronizing would stall the step
            torch._assert_async(all_announced)  # pyright: ignore[reportPrivateImportUsage]
        elif not all_announced:
            problem = "forward got ids that were not announced"
            raise ValueError(f"{problem}: `ids` of `prefetch` must return all ids of a batch")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Discards the gradients that accumulated since the last step."""
        super().zero_grad(set_to_none)
        self._gradients.clear()

    def leaves(self) -> list[Tensor]:
        """Returns a list of at most one leaf tensor: the rows that received a gradient since the last step.

        ``step`` uses the ``grad`` of this tensor, so functions such as ``clip_grad_norm_`` may change it.
        """
        return [rows for _, rows in self._gradients.merge()]

    @torch.no_grad()
    def step(self, learning_rate: float | None = None) -> None:
        """Updates the rows that received a gradient since the last step, and discards the gradients.

        Args:
            learning_rate: Learning rate of this step; None: the learning rate of the optimizer.

        Raises:
            ArithmeticError: A gradient is not finite; no row was changed (on a GPU: a device-side assertion).
            RuntimeError: Several processes train the model (see ShardedEmbedding).
        """
        self._check_processes()
        gradients = [(ids, rows.grad) for ids, rows in self._gradients.merge()]
        self.zero_grad()
        self._announced_rows = None
        if not gradients:
            return
        ids, grad = gradients[0]
        assert grad is not None
        self._check_finite(ids, grad)
        self.steps += 1
        rate = self.optimizer.learning_rate if learning_rate is None else learning_rate
        with update_rows(self.table, ids) as (rows, state):
            rates = torch.full((len(ids), 1), rate, device=rows.device)
            self.optimizer.update_(rows, grad, state, rates, self.steps)

    def _check_processes(self) -> None:
        if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
            problem = "an OffloadedEmbedding is not synchronized between processes, so its rows would diverge"
            remedy = "use ShardedEmbedding, or train it in one process, without DistributedDataParallel"
            raise RuntimeError(f"{problem}; {remedy}")

    def _check_finite(self, ids: Tensor, grad: Tensor) -> None:
        is_finite = torch.isfinite(grad).all(1)
        if self.table.device.type == "cuda":  # synchronizing would stall the step
            torch._assert_async(is_finite.all())  # pyright: ignore[reportPrivateImportUsage]
        elif not is_finite.all():
            rows = ids[~is_finite].tolist()
            problem = f"non-finite gradient for {len(rows)} rows, the first is {rows[0]}; no row was changed"
            raise ArithmeticError(f"{problem}. Lower the learning rate or clip the gradients")

    def save(self, file: str | Path) -> None:
        """Writes rows, optimizer state and step count to a safetensors file, atomically and in pieces."""
        write_safetensors(Path(file), self.table.sections(), {"embedding": self.metadata()})

    def metadata(self) -> str:
        """Returns the metadata of a saved file, step count and layout, as JSON."""
        return json.dumps({"steps": self.steps, "layout": self.layout})

    def load(self, file: str | Path) -> None:
        """Loads rows, optimizer state and step count from a file that ``save`` wrote.

        Raises:
            ValueError: The file was saved with another size, type or optimizer.
        """
        with safe_open(file, framework="pt") as tensor_file:
            self.restore(tensor_file)

    def restore(self, tensor_file: Any, prefix: str = "") -> None:
        """Loads the tensors whose names begin with ``prefix`` from an open safetensors file; see ``load``."""
        names = [name for name in tensor_file.keys() if name.startswith(prefix)]  # noqa: SIM118
        saved_shapes = {name: tuple(tensor_file.get_slice(name).get_shape()) for name in names}
        expected_shapes = {prefix + name: section.shape for name, section in self.table.sections().items()}
        if saved_shapes != expected_shapes:
            problem = f"the file contains {saved_shapes}, this embedding has {expected_shapes}"
            raise ValueError(f"{problem}; it was saved with another size, type or optimizer")
        metadata = json.loads(tensor_file.metadata()[prefix + "embedding"])
        if (layout := metadata.get("layout")) != self.layout:
            raise ValueError(f"the file has rows of {layout}, this embedding has rows of {self.layout}")
        self.table.restore(lambda name: tensor_file.get_slice(prefix + name))
        self.steps = metadata["steps"]

    def __deepcopy__(self, memo: Any) -> NoReturn:
        advice = "`load` into it a file that this one saved, or pass it the rows of this one as `start`"
        remedy = f"build another embedding and {advice}"
        raise TypeError(f"an OffloadedEmbedding has no deep copy, which would double its memory: {remedy}")

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"] = self.table.sections()["rows"].tensor()

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        """Loads the rows from ``weight``, the parameter of nn.Embedding, and resets the optimizer state."""
        name, shape = prefix + "weight", (len(self.table), self.embedding_dim)
        if strict:
            unexpected_keys += [key for key in state_dict if key.startswith(prefix) and key != name]
        weight = state_dict.get(name)
        if weight is None:
            missing_keys.append(name)
        elif tuple(weight.shape) != shape:
            error_msgs.append(f"{name} has shape {tuple(weight.shape)}, expected {shape}")
        else:
            self.table.start_from(as_section(weight.detach()), self.optimizer)
            self.steps = 0
