"""Divides the rows of an embedding among processes (row-wise sharding).

Every process stores and updates a part of the rows, with their optimizer state.

    ids ─▶ processes that store the rows (all-to-all) ─▶ rows ─▶ processes that need them (all-to-all)

Gradients are sent in the opposite direction. Row i is stored by process i mod n, so that frequent rows, which
have low numbers, are divided evenly. As with DistributedDataParallel, gradients are averaged over the
processes.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

from storage.tables.embedding import OffloadedEmbedding
from storage.tables.embedding_bag import OffloadedEmbeddingBag
from storage.tables.prefetch import find_distinct_ids
from storage.tables.segment_sums import take_rows
from storage.tables.streaming import Section, make_initial_rows

BatchT = TypeVar("BatchT")
NO_BATCH = -1  # sent instead of a number of ids by a process that has no further batch


class ShardedEmbedding(OffloadedEmbedding):
    """Embedding whose rows and optimizer state are divided among the processes of ``torch.distributed``.

    All processes must construct the embedding, and call ``forward``, ``backward`` and ``step`` equally often.
    ``save``, ``load``, ``state_dict`` and ``leaves`` concern only the rows of this process. ``prefetch`` ends
    in all processes when one process has no further batch.

    Args:
        num_embeddings: Number of rows of all processes together.
        start: Initial rows of all processes, as in ``OffloadedEmbedding``. Each process stores only its part.
        seed: Seed of random initial rows; it must be equal in all processes.
        padding_idx: Row without gradients, as in ``OffloadedEmbedding``.
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
        padding_row = None if padding_idx is None else range(num_embeddings)[padding_idx]
        options["padding_idx"] = None
        if padding_row is not None and padding_row % self.processes == self.rank:
            options["padding_idx"] = padding_row // self.processes
        local_start: Tensor | Section
        if isinstance(start, Tensor):
            local_start = start[self.rank :: self.processes]
        else:
            section = make_initial_rows((num_embeddings, embedding_dim), start, seed)
            local_start = take_every_nth_row(section, self.rank, self.processes)
        local_rows = len(range(self.rank, num_embeddings, self.processes))
        super().__init__(local_rows, embedding_dim, start=local_start, seed=seed + self.rank, **options)
        self.num_embeddings, self.padding_idx = num_embeddings, padding_row
        self.layout = {"process": self.rank, "processes": self.processes, "rows": num_embeddings}
        # A separate group is needed, because the thread that plans batches exchanges ids while a step runs.
        self._planning_group = distributed.new_group(backend="gloo")

    def prefetch(
        self, batches: Iterable[BatchT], ids: Callable[[BatchT], Tensor | Sequence[Tensor]]
    ) -> Iterator[BatchT]:
        """Iterates over batches, and prefetches the rows of the next batches while a step runs.

        ``ids`` is a function that returns the ids that this process will pass to ``forward`` for a batch.
        """
        batches_with_rows = self._exchange_batches(batches, ids)
        try:
            prefetched: Any = super().prefetch(batches_with_rows, lambda pair: pair[1])
            with closing(prefetched):  # ends the thread that runs the generator ``batches_with_rows``
                for batch, _ in prefetched:
                    yield batch
        finally:
            batches_with_rows.close()

    def _exchange_batches(
        self, batches: Iterable[BatchT], ids: Any
    ) -> Generator[tuple[BatchT, Tensor], None, None]:
        """Yields each batch of this process, and the rows stored by this process that any process needs now.

        Ends as soon as any process has no more batches.
        """
        all_continue = True
        try:
            for batch in batches:
                route = self._route_ids(find_distinct_ids(ids(batch)))
                received_sizes = self._exchange_sizes(route.sizes, self._planning_group)
                all_continue = NO_BATCH not in received_sizes
                if not all_continue:
                    return
                requested_rows = self._exchange_ids(route, received_sizes, self._planning_group)
                yield batch, find_distinct_ids(requested_rows)
        finally:
            if all_continue:  # also if the caller leaves the loop, because other processes wait for ids
                self._exchange_sizes([NO_BATCH] * self.processes, self._planning_group)

    def _gather_distinct_rows(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Returns a row per distinct id, ordered by the process that stores it, and each id's row index."""
        distinct_ids, positions = torch.unique(ids, return_inverse=True)
        if len(distinct_ids) and not 0 <= int(distinct_ids[0]) <= int(distinct_ids[-1]) < self.num_embeddings:
            invalid_id = int(distinct_ids[0] if distinct_ids[0] < 0 else distinct_ids[-1])
            raise IndexError(f"id {invalid_id} is not in the embedding, which has {self.num_embeddings} rows")
        route = self._route_ids(distinct_ids)
        received_sizes = self._exchange_sizes(route.sizes)
        requested_rows = self._exchange_ids(route, received_sizes)
        local_rows = take_rows(*super()._gather_distinct_rows(requested_rows))
        rows = _ExchangeRows.apply(local_rows, received_sizes, route.sizes)
        if rows.requires_grad:
            rows.register_hook(lambda grad: grad / self.processes)
        self._padding_position = self._find_padding(distinct_ids[route.order])
        return rows, route.order.argsort()[positions]

    def _route_ids(self, distinct_ids: Tensor) -> "_Route":
        """Sorts distinct ids by the process that stores the row."""
        storing_processes = distinct_ids % self.processes
        order = storing_processes.argsort(stable=True)
        sizes = storing_processes.bincount(minlength=self.processes).tolist()
        return _Route(distinct_ids[order] // self.processes, order, sizes)

    def _exchange_sizes(self, sizes: list[int], group: Any = None) -> list[int]:
        """Sends sizes[i] to process i. Returns the numbers that this process has received, by sender."""
        device = self.table.device if group is None else "cpu"
        received_sizes = torch.empty(self.processes, dtype=torch.int64, device=device)
        distributed.all_to_all_single(received_sizes, torch.tensor(sizes, device=device), group=group)
        return received_sizes.tolist()

    def _exchange_ids(self, route: "_Route", received_sizes: list[int], group: Any = None) -> Tensor:
        """Sends row numbers to the processes that store the rows. Returns the received numbers, by sender."""
        rows = route.rows.new_empty(sum(received_sizes))
        distributed.all_to_all_single(rows, route.rows, received_sizes, route.sizes, group=group)
        return rows

    def _check_processes(self) -> None:
        """Does nothing: a row is stored by only one process, so there are no copies that could diverge."""

    def _check_finite(self, ids: Tensor, grad: Tensor) -> None:
        """Raises an error in every process if any process has a gradient that is not finite.

        Either all processes change their rows, or none does.
        """
        all_finite = torch.isfinite(grad).all().to(torch.int64)
        distributed.all_reduce(all_finite, distributed.ReduceOp.MIN)
        super()._check_finite(ids * self.processes + self.rank, grad)
        if not all_finite:
            raise ArithmeticError("non-finite gradient in another process; no row was changed")


class ShardedEmbeddingBag(OffloadedEmbeddingBag, ShardedEmbedding):
    """``OffloadedEmbeddingBag`` whose rows are divided among processes; see ``ShardedEmbedding``."""


class _ExchangeRows(torch.autograd.Function):
    """Sends rows to the processes that need them; the backward pass sends their gradients back."""

    @staticmethod
    def forward(ctx, rows: Tensor, sent_sizes: list[int], received_sizes: list[int]) -> Tensor:
        ctx.sizes = sent_sizes, received_sizes
        received_rows = rows.new_empty(sum(received_sizes), rows.shape[1])
        distributed.all_to_all_single(received_rows, rows, received_sizes, sent_sizes)
        return received_rows

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None, None]:
        sent_sizes, received_sizes = ctx.sizes
        grad = grads[0].new_empty(sum(sent_sizes), grads[0].shape[1])
        distributed.all_to_all_single(grad, grads[0].contiguous(), sent_sizes, received_sizes)
        return grad, None, None


@dataclass(frozen=True)
class _Route:
    """Distinct ids, sorted by the process that stores the row."""

    rows: Tensor  # number of each id's row in the process that stores it
    order: Tensor  # position of each sorted id in the unsorted ids
    sizes: list[int]  # number of ids of each process


def take_every_nth_row(section: Section, first: int, step: int) -> Section:
    """Returns a section with the rows ``first``, ``first`` + ``step``, … of another section."""

    def pieces() -> Iterator[Tensor]:
        start = 0
        for piece in section.pieces():
            yield piece[(first - start) % step :: step]
            start += len(piece)

    return Section(section.dtype, (len(range(first, section.shape[0], step)), *section.shape[1:]), pieces)
