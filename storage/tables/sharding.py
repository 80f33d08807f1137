"""Row-wise sharding: every process stores a part of the rows and updates it with its optimizer state.

    ids ─▶ process of each row (all-to-all) ─▶ rows ─▶ back (all-to-all)

Gradients take the reverse way. Row i is stored by process i mod n, so that frequent rows are divided evenly.
As with DistributedDataParallel, gradients are averaged over the processes.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

from storage.tables.embedding import OffloadedEmbedding
from storage.tables.embedding_bag import OffloadedEmbeddingBag
from storage.tables.prefetch import distinct_ids
from storage.tables.segment_sums import take_rows
from storage.tables.streaming import Section, initial_rows

BatchT = TypeVar("BatchT")
ENDED = -1  # sent instead of a number of ids: this process has no further batch


class ShardedEmbedding(OffloadedEmbedding):
    """Embedding whose rows and optimizer state are divided among the processes of ``torch.distributed``.

    All processes must build it, and call ``forward``, ``backward`` and ``step`` equally often. ``save``,
    ``load``, ``state_dict`` and ``leaves`` are about the rows of this process. ``prefetch`` ends in all
    processes when one of them has no further batch.

    Args:
        num_embeddings: Number of rows of all processes together.
        start: As in ``OffloadedEmbedding``, rows of all processes; each stores its part only.
        seed: Seed of the drawn rows, the same in all processes.
        padding_idx: As in ``OffloadedEmbedding``.
        options: Other arguments of ``OffloadedEmbedding``, for the rows of this process.

    Raises:
        RuntimeError: The process group is not initialized.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        start: Tensor | Section | float = 1.0,
        seed: int = 0,
        padding_idx: int | None = None,
        **options: Any,
    ) -> None:
        if not (distributed.is_available() and distributed.is_initialized()):
            raise RuntimeError(
                "call torch.distributed.init_process_group before building a sharded embedding"
            )
        self.rank, self.processes = distributed.get_rank(), distributed.get_world_size()
        if num_embeddings < self.processes:
            raise ValueError(f"{num_embeddings} rows cannot be divided among {self.processes} processes")
        padding = None if padding_idx is None else range(num_embeddings)[padding_idx]
        options["padding_idx"] = None
        if padding is not None and padding % self.processes == self.rank:
            options["padding_idx"] = padding // self.processes
        part: Tensor | Section
        if isinstance(start, Tensor):
            part = start[self.rank :: self.processes]
        else:
            section = initial_rows((num_embeddings, embedding_dim), start, seed)
            part = section_part(section, self.rank, self.processes)
        rows = len(range(self.rank, num_embeddings, self.processes))
        super().__init__(rows, embedding_dim, start=part, seed=seed + self.rank, **options)
        self.num_embeddings, self.padding_idx = num_embeddings, padding
        self.layout = {"process": self.rank, "processes": self.processes, "rows": num_embeddings}
        # a separate group, because the thread that plans batches exchanges ids while a step runs
        self._planning_group = distributed.new_group(backend="gloo")

    def prefetch(
        self, batches: Iterable[BatchT], ids: Callable[[BatchT], Tensor | Sequence[Tensor]]
    ) -> Iterator[BatchT]:
        """Iterates over batches, and prefetches the rows of the next batches while a step runs.

        ``ids`` returns the ids that this process will pass to ``forward``.
        """
        planned = self._exchange_batches(batches, ids)
        try:
            pairs: Any = super().prefetch(planned, lambda pair: pair[1])
            with closing(pairs):  # ends the thread that runs ``planned``
                for batch, _ in pairs:
                    yield batch
        finally:
            planned.close()

    def _exchange_batches(
        self, batches: Iterable[BatchT], ids: Any
    ) -> Generator[tuple[BatchT, Tensor], None, None]:
        """Yields each batch with the rows of this process that any process uses, until a process ends."""
        all_continue = True
        try:
            for batch in batches:
                routed = self._route_ids(distinct_ids(ids(batch)))
                received = self._exchange_sizes(routed.sizes, self._planning_group)
                all_continue = ENDED not in received
                if not all_continue:
                    return
                yield batch, distinct_ids(self._exchange_ids(routed, received, self._planning_group))
        finally:
            if all_continue:  # also if the caller leaves the loop: the others would wait for ids
                self._exchange_sizes([ENDED] * self.processes, self._planning_group)

    def _distinct_rows(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the distinct rows, sorted by storing process, and the position of each id in them."""
        distinct, positions = torch.unique(ids, return_inverse=True)
        if len(distinct) and not 0 <= int(distinct[0]) <= int(distinct[-1]) < self.num_embeddings:
            outside = int(distinct[0] if distinct[0] < 0 else distinct[-1])
            raise IndexError(f"id {outside} of an embedding with {self.num_embeddings} rows")
        routed = self._route_ids(distinct)
        received = self._exchange_sizes(routed.sizes)
        requested = self._exchange_ids(routed, received)
        rows = take_rows(*super()._distinct_rows(requested))
        returned = _Exchange.apply(rows, received, routed.sizes)
        if returned.requires_grad:
            returned.register_hook(lambda grad: grad / self.processes)
        self._padding_position = self._find_padding(distinct[routed.order])
        return returned, routed.order.argsort()[positions]

    def _route_ids(self, distinct: Tensor) -> "_Routed":
        """Sorts ids by the process that stores the row."""
        owners = distinct % self.processes
        order = owners.argsort(stable=True)
        sizes = owners.bincount(minlength=self.processes).tolist()
        return _Routed(distinct[order] // self.processes, order, sizes)

    def _exchange_sizes(self, sizes: list[int], group: Any = None) -> list[int]:
        """Sends a number to each process and returns those of the others, by process."""
        device = self.table.device if group is None else "cpu"
        received = torch.empty(self.processes, dtype=torch.int64, device=device)
        distributed.all_to_all_single(received, torch.tensor(sizes, device=device), group=group)
        return received.tolist()

    def _exchange_ids(self, routed: "_Routed", received: list[int], group: Any = None) -> Tensor:
        """Sends ids to the processes that store their rows. Returns the received row numbers by process."""
        rows = routed.rows.new_empty(sum(received))
        distributed.all_to_all_single(rows, routed.rows, received, routed.sizes, group=group)
        return rows

    def _check_processes(self) -> None:
        """Does nothing, because a row is stored by one process only, so copies cannot diverge."""

    def _check_finite(self, ids: Tensor, grad: Tensor) -> None:
        """Checks the gradients of all processes, so that all processes change their rows, or none does."""
        all_finite = torch.isfinite(grad).all().to(torch.int64)
        distributed.all_reduce(all_finite, distributed.ReduceOp.MIN)
        super()._check_finite(ids * self.processes + self.rank, grad)
        if not all_finite:
            raise ArithmeticError("non-finite gradient in another process; no row was changed")


class ShardedEmbeddingBag(OffloadedEmbeddingBag, ShardedEmbedding):
    """``OffloadedEmbeddingBag`` whose rows are divided among processes; see ``ShardedEmbedding``."""


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor, sizes: list[int], received: list[int]) -> Tensor:
        ctx.sizes = sizes, received
        output = rows.new_empty(sum(received), rows.shape[1])
        distributed.all_to_all_single(output, rows, received, sizes)
        return output

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None, None]:
        sizes, received = ctx.sizes
        grad = grads[0].new_empty(sum(sizes), grads[0].shape[1])
        distributed.all_to_all_single(grad, grads[0].contiguous(), sizes, received)
        return grad, None, None


@dataclass(frozen=True)
class _Routed:
    """Ids, sorted by the process that stores the row."""

    rows: Tensor  # row numbers within the process
    order: Tensor  # positions of the ids before sorting
    sizes: list[int]  # number of ids of each process


def section_part(section: Section, first: int, step: int) -> Section:
    """Returns a section with the rows ``first``, ``first`` + ``step``, … of another section."""

    def pieces() -> Iterator[Tensor]:
        start = 0
        for piece in section.pieces():
            yield piece[(first - start) % step :: step]
            start += len(piece)

    return Section(section.dtype, (len(range(first, section.shape[0], step)), *section.shape[1:]), pieces)
