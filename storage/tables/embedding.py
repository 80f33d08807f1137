"""``nn.Embedding`` for tables larger than the GPU, for any PyTorch loop (docs/offload.md has an example).

The rows are no parameters of the module: its own ``step`` updates those that had a gradient.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from safetensors import safe_open
from torch import Tensor, nn

from storage.sums import add_up
from storage.tables.offloaded import Offloaded
from storage.tables.row_storage import StateInitializer, affordable_rows
from storage.tables.streaming import random_rows, whole, write_safetensors
from storage.tables.transfer import TransferKind

B = TypeVar("B")


class RowOptimizer(StateInitializer, Protocol):
    """How rows are updated: any optimizer of tasks/optimizers, or one's own."""

    @property
    def learning_rate(self) -> float:
        """Of a step that names none."""
        ...

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: int) -> None:
        """Updates rows (unique, dim) and state in place; ``rate`` (unique, 1), ``step`` counts from 1."""


class OffloadedEmbedding(nn.Module):
    """Rows and their optimizer state in host memory (or a mapped file), the ones in use on the device.

    Args:
        num_embeddings: Frequent ids should be small, since the first rows are always cached.
        cache_bytes: Device memory for rows; 0: four fifths of what is free.
        cache_rows: The same in rows; 0: as many as cache_bytes hold.
        start: Initial rows, float32 (num_embeddings, embedding_dim), or the spread of normal ones.
        seed: Of those, and of stochastic rounding; the other arguments are as in Offloaded.

    Raises:
        ValueError: The cache holds not one row, or the transfer is not available.
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
        start: Tensor | float = 1.0,
        seed: int = 0,
        lookahead: int = 2,
        row_dtype: torch.dtype = torch.float32,
        state_dtype: torch.dtype = torch.float32,
        transfer: TransferKind = "auto",
        folder: Path | None = None,
        batch: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.optimizer = num_embeddings, embedding_dim, optimizer
        shape = num_embeddings, embedding_dim
        device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        types = {"row_dtype": row_dtype, "state_dtype": state_dtype}
        if not cache_rows:
            probe = torch.zeros(1, embedding_dim)
            cache_rows = affordable_rows(num_embeddings, probe, optimizer, cache_bytes, device, **types)
        rows = whole(start) if isinstance(start, Tensor) else random_rows(*shape, start, seed)
        if rows.shape != shape:
            raise ValueError(f"start has shape {rows.shape}, expected {shape}")
        about = {"lookahead": lookahead, "transfer": transfer, "folder": folder, "seed": seed, **types}
        about |= {"cache_rows": cache_rows, "batch": batch}
        self.table = Offloaded(rows, optimizer, device=device, **about)
        self.steps = 0
        self._announced: Tensor | None = None  # ids of the batch under way, rising, on the device
        self._leaves: list[tuple[Tensor, Tensor]] = []  # ids and rows of each gather since the last step

    def ahead(self, batches: Iterable[B], ids: Callable[[B], Tensor | Sequence[Tensor]]) -> Iterator[B]:
        """The batches, read in a thread, with the rows of the next ones prefetched while a step runs.

        Args:
            batches: Of any kind.
            ids: All ids that a batch's ``forward`` calls will use: one integer tensor, or several. ``step``
                updates them all, those that ``forward`` then leaves out with a gradient of zero.
        """

        def distinct_ids(batch: B) -> Tensor:
            found = ids(batch)
            tensors = [found] if isinstance(found, Tensor) else found
            return torch.cat([tensor.flatten().cpu() for tensor in tensors]).long().unique()  # rising

        announced = ((batch, distinct_ids(batch)) for batch in batches)
        try:
            for batch, distinct in self.table.ahead(announced, lambda pair: pair[1]):
                self._leaves, self._announced = [], distinct.to(self.table.device)
                yield batch
        finally:
            self._leaves, self._announced = [], None

    def forward(self, ids: Tensor) -> Tensor:
        """Rows of ids, (*ids.shape, embedding_dim), on the device.

        Raises:
            ValueError: Within ``ahead``, an id that was not announced (on a GPU a device-side assertion).
        """
        ids = ids.to(self.table.device, torch.int64)
        if self._announced is None:
            distinct, places = torch.unique(ids, return_inverse=True)
        else:
            distinct = self._announced
            places = torch.searchsorted(distinct, ids)
            self._check_announced(distinct, places, ids)
        if self._announced is None or not self._leaves:
            rows = self.table.gather(distinct)[0].requires_grad_(torch.is_grad_enabled())
            if torch.is_grad_enabled():
                self._leaves.append((distinct, rows))
        else:
            rows = self._leaves[0][1]
        return _Take.apply(rows, places)

    def _check_announced(self, distinct: Tensor, places: Tensor, ids: Tensor) -> None:
        known = torch.tensor(ids.numel() == 0)
        if len(distinct):
            known = (distinct[places.clamp(max=len(distinct) - 1)] == ids).all()
        if self.table.device.type == "cuda":  # waiting here for the GPU would cost the step its head start
            torch._assert_async(known)  # pyright: ignore[reportPrivateImportUsage]
        elif not known:
            missed = "forward got ids that were not announced"
            raise ValueError(f"{missed}: `ids` of `ahead` must return all ids of a batch")

    @torch.no_grad()
    def step(self, learning_rate: float | None = None) -> None:
        """Updates the rows that had a gradient since the last step; None: the optimizer's learning rate."""
        used = [(ids, rows.grad) for ids, rows in self._leaves if rows.grad is not None]
        self._leaves = []
        if not used:
            return
        ids, grad = used[0]
        if len(used) > 1:
            ids, places = torch.unique(torch.cat([ids for ids, _ in used]), return_inverse=True)
            grad = add_up(torch.cat([grad for _, grad in used]), places, len(ids))
        rows, state = self.table.gather(ids)
        self.steps += 1
        rate = self.optimizer.learning_rate if learning_rate is None else learning_rate
        rates = torch.full((len(ids), 1), rate, device=rows.device)
        self.optimizer.update_(rows, grad, state, rates, self.steps)
        self.table.write_back(ids, rows, state)

    def save(self, file: str | Path) -> None:
        """Streams rows, state and step count into one safetensors file, atomically."""
        metadata = {"embedding": json.dumps({"steps": self.steps})}
        write_safetensors(Path(file), self.table.sections(), metadata)

    def load(self, file: str | Path) -> None:
        """Resumes from what ``save`` wrote; ValueError where that is of another size or optimizer."""
        with safe_open(file, framework="pt") as opened:
            found = {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
            expected = {name: section.shape for name, section in self.table.sections().items()}
            if found != expected:
                why = "it was saved with another size, type or optimizer"
                raise ValueError(f"{file} holds {found}, this embedding has {expected}; {why}")
            self.table.restore(opened.get_slice)
            self.steps = json.loads(opened.metadata()["embedding"])["steps"]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        pieces = self.table.sections()["rows"].pieces()
        destination[prefix + "weight"] = torch.cat([piece.cpu() for piece in pieces])

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        """Loads ``weight``, as nn.Embedding has it, and resets the optimizer's state."""
        name, shape = prefix + "weight", (self.num_embeddings, self.embedding_dim)
        weight = state_dict.get(name)
        if weight is None:
            missing_keys.append(name)
        elif tuple(weight.shape) != shape:
            error_msgs.append(f"{name} has shape {tuple(weight.shape)}, expected {shape}")
        else:
            self.table.start_from(whole(weight.detach()), self.optimizer)
            self.steps = 0


class _Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.count = len(rows)
        return rows.index_select(0, places.flatten()).view(*places.shape, rows.shape[1])

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return add_up(grads[0].reshape(-1, grads[0].shape[-1]), places.flatten(), ctx.count), None
