"""``nn.Embedding`` for tables larger than the GPU, for any PyTorch loop; docs/offload.md has an example that trains.

    embedding = OffloadedEmbedding(10_000_000, 128, rule=Adagrad(), cache_bytes=2**31)
    for batch in embedding.ahead(batches, ids=lambda batch: batch):
        loss = model(embedding(batch))
        loss.backward()
        embedding.step()

The rows are no parameters of the module: its own ``step`` moves them, by the rule, those that had a gradient. Gradients
of the same row are added up (sorted, then summed piece by piece: the same bits every time, on a GPU too).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn import functional as F

from storage.tables.budget import affordable_rows
from storage.tables.movers import Kind
from storage.tables.offloaded import Offloaded
from storage.tables.streaming import Part, spans, whole, write_safetensors

B = TypeVar("B")


class MovingRule(Protocol):
    """How rows move: any rule of tasks/train/rules, or one's own."""

    @property
    def learning_rate(self) -> float:
        """Of a step that names none."""
        ...

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """State before the first step, one row a row."""
        ...

    def update_(self, rows: Tensor, grad: Tensor, state: dict[str, Tensor], rate: Tensor, step: int) -> None:
        """Moves rows (unique, dim) and their state in place; ``rate`` (unique, 1), ``step`` counts from 1."""
        ...


class OffloadedEmbedding(nn.Module):
    """Rows and their optimizer state in host memory (or a mapped file), the ones in use on the device.

    Args:
        num_embeddings: Rows. Ids that are asked for often should be small: the first ones are always cached.
        embedding_dim: Numbers a row.
        rule: How rows move.
        cache_bytes: Memory of the device for them; 0: four fifths of what is free.
        cache_rows: The same in rows; 0: as many as cache_bytes hold.
        device: Where the model is; None: the GPU where there is one.
        start: Rows at the start, float32 (num_embeddings, embedding_dim), or the spread of normal ones.
        seed: Of those, and of stochastic rounding.
        lookahead, row_dtype, state_dtype, mover, folder: As in Offloaded.

    Raises:
        ValueError: The cache holds not one row, or the mover cannot be had.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        rule: MovingRule,
        cache_bytes: int = 0,
        cache_rows: int = 0,
        device: torch.device | str | None = None,
        start: Tensor | float = 1.0,
        seed: int = 0,
        lookahead: int = 2,
        row_dtype: torch.dtype = torch.float32,
        state_dtype: torch.dtype = torch.float32,
        mover: Kind = "auto",
        folder: Path | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.rule = num_embeddings, embedding_dim, rule
        device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        types = {"row_dtype": row_dtype, "state_dtype": state_dtype}
        cache_rows = cache_rows or affordable_rows(num_embeddings, torch.zeros(1, embedding_dim), rule, cache_bytes, device, **types)
        rows = whole(start) if isinstance(start, Tensor) else scattered_rows(num_embeddings, embedding_dim, start, seed)
        if rows.shape != (num_embeddings, embedding_dim):
            raise ValueError(f"start has shape {rows.shape}, expected {(num_embeddings, embedding_dim)}")
        self.table = Offloaded(rows, rule, device=device, cache_rows=cache_rows, lookahead=lookahead, mover=mover, folder=folder, seed=seed, **types)
        self.steps = 0
        self._announced: Tensor | None = None  # ids of the batch under way, rising, on the device
        self._leaves: list[tuple[Tensor, Tensor]] = []  # ids and rows of each gather since the last step

    def ahead(self, batches: Iterable[B], ids: Callable[[B], Tensor | Sequence[Tensor]]) -> Iterator[B]:
        """The batches, the rows of the next ones on their way while a step runs.

        Args:
            batches: A DataLoader, a list, any iterable; it is read in a thread.
            ids: All ids that a batch's ``forward`` calls will ask for: one integer tensor, or several. ``step`` moves
                them all, those that ``forward`` then leaves out with a gradient of zero.
        """
        announced = ((batch, _distinct(ids(batch))) for batch in batches)
        try:
            for batch, distinct in self.table.ahead(announced, lambda pair: pair[1]):
                self._leaves, self._announced = [], distinct.to(self.table.device)
                yield batch
        finally:
            self._leaves, self._announced = [], None

    def forward(self, ids: Tensor) -> Tensor:
        """Rows of ids, (*ids.shape, embedding_dim), on the device.

        Raises:
            ValueError: Within ``ahead``, an id that was not announced.
        """
        ids = ids.to(self.table.device, torch.int64)
        if self._announced is None:
            distinct, places = torch.unique(ids, return_inverse=True)
        else:
            distinct = self._announced
            places = torch.searchsorted(distinct, ids)
            known = (distinct[places.clamp(max=max(0, len(distinct) - 1))] == ids).all() if len(distinct) else torch.tensor(ids.numel() == 0)
            if self.table.device.type == "cuda":
                torch._assert_async(known)  # pyright: ignore[reportPrivateImportUsage]  # waiting here for the GPU would cost the step its head start
            elif not known:
                raise ValueError("forward asks for ids that `ahead` was not told of: its argument `ids` must name all ids of a batch")
        if self._announced is None or not self._leaves:
            rows = self.table.gather(distinct)[0].requires_grad_(torch.is_grad_enabled())
            if torch.is_grad_enabled():
                self._leaves.append((distinct, rows))
        else:
            rows = self._leaves[0][1]
        return _Take.apply(rows, places)

    @torch.no_grad()
    def step(self, learning_rate: float | None = None) -> None:
        """Moves the rows that had a gradient since the last step.

        Args:
            learning_rate: Of this step; None: the rule's.
        """
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
        rate = torch.full((len(ids), 1), self.rule.learning_rate if learning_rate is None else learning_rate, device=rows.device)
        self.rule.update_(rows, grad, state, rate, self.steps)
        self.table.write_back(ids, rows, state)

    # -- files and nn.Embedding --------------------------------------------------------------------------------------

    def save(self, file: str | Path) -> None:
        """Writes rows, state and number of steps into one safetensors file, piece by piece and in one rename."""
        write_safetensors(Path(file), self.table.parts(), {"embedding": json.dumps({"steps": self.steps})})

    def load(self, file: str | Path) -> None:
        """Goes on from what ``save`` wrote.

        Raises:
            ValueError: It is of another size or rule.
        """
        with safe_open(file, framework="pt") as opened:
            found = {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118  (no mapping: safe_open has keys() alone)
            expected = {name: part.shape for name, part in self.table.parts().items()}
            if found != expected:
                raise ValueError(f"{file} holds {found}, this embedding has {expected}; it was saved with another size, type or rule")
            self.table.restore(opened.get_slice)
            self.steps = json.loads(opened.metadata()["embedding"])["steps"]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"] = torch.cat([piece.cpu() for piece in self.table.parts()["rows"].pieces()])

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]
    ) -> None:
        """Takes ``weight``, as nn.Embedding has it; the rule's state starts anew."""
        weight = state_dict.get(prefix + "weight")
        if weight is None:
            missing_keys.append(prefix + "weight")
        elif tuple(weight.shape) != (self.num_embeddings, self.embedding_dim):
            error_msgs.append(f"{prefix}weight has shape {tuple(weight.shape)}, expected {(self.num_embeddings, self.embedding_dim)}")
        else:
            self.table.start_from(whole(weight.detach()), self.rule)
            self.steps = 0

    def extra_repr(self) -> str:
        """What print shows."""
        places = self.table.places
        return f"{self.num_embeddings}, {self.embedding_dim}, cache_rows={places.hot + places.recent}, device={self.table.device}"


def scattered_rows(rows: int, dim: int, spread: float, seed: int) -> Part:
    """Normal rows, drawn piece by piece: float32 (rows, dim)."""

    def pieces() -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        return (torch.randn(last - first, dim, generator=generator).mul_(spread) for first, last in spans(rows, dim * 4))

    return Part(torch.float32, (rows, dim), pieces)


def add_up(values: Tensor, places: Tensor, count: int) -> Tensor:
    """Sums of values by place, in the order of the values: no atomic additions, so the bits repeat.

    Args:
        values: (any, dim).
        places: int64 (any,), below ``count``.
        count: Of sums.

    Returns:
        (count, dim).
    """
    order = torch.sort(places, stable=True).indices
    starts = F.pad(torch.bincount(places, minlength=count).cumsum(0), (1, 0))
    return F.embedding_bag(order, values, starts, mode="sum", include_last_offset=True)


class _Take(torch.autograd.Function):
    """Rows at places, whose gradients are added up in order."""

    @staticmethod
    def forward(ctx, rows: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.count = len(rows)
        return rows.index_select(0, places.flatten()).view(*places.shape, rows.shape[1])

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return add_up(grads[0].reshape(-1, grads[0].shape[-1]), places.flatten(), ctx.count), None


def _distinct(ids: Tensor | Sequence[Tensor]) -> Tensor:
    """int64 (unique,), rising, on the CPU."""
    tensors = [ids] if isinstance(ids, Tensor) else list(ids)
    return torch.cat([tensor.flatten().cpu() for tensor in tensors]).long().unique()
