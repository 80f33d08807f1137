"""Batches made ahead of their use, in order: in this process, or by worker processes that stay from epoch to epoch.

A thread makes the next batch, or fetches it from a worker, while the last one is used: NumPy's gathers, torch's copies and products and the
waiting for a worker all let the interpreter go. Fetching takes 1 ms of a core for 1 MB, a twelfth of a step. On one core there is no thread, and
batches come when they are asked for.

Workers are the DataLoader's, started by forkserver (a forked child of a Prefect task dies). Each batch is written into
the next block of a ring of shared memory that is made once; what goes through the queue is a slot's number and the
shapes. The ring has one block more than there can be batches under way, and a batch is copied out before the next is asked for:
so no block is written while it is read, and a batch stays good for as long as its user likes.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from tasks.pool import cores
from tasks.preprocess.buffers import lay_out, owned, pinned, write

Item = TypeVar("Item", contravariant=True)
Made = TypeVar("Made", covariant=True)
SMALLEST_BLOCK = 1 << 16  # bytes


class Maker(Protocol[Item, Made]):
    """Makes a batch of an item. It travels to workers, so it holds paths, never arrays."""

    def __getitem__(self, item: Item, /) -> Made:
        """The batch; a nest of NamedTuples of CPU tensors."""
        ...


class Delivery(Generic[Item, Made]):
    """Delivers what a maker makes of items, in their order.

    Args:
        maker: What makes batches.
        workers: Processes; 0 makes them in this one, one batch ahead.
        prefetch: Batches that each worker is asked for ahead.
        pin: Whether batches come in pinned memory.
    """

    def __init__(self, maker: Maker[Item, Made], *, workers: int, prefetch: int = 2, pin: bool = False) -> None:
        self._maker, self._workers, self._prefetch, self._pin = maker, workers, prefetch, pin
        self._items = _Numbered(workers * prefetch + 1)
        self._blocks: Tensor | None = None
        self._loader: DataLoader[Any] | None = None
        self._thread: ThreadPoolExecutor | None = None

    def deliver(self, items: Sequence[Item]) -> Iterator[Made]:
        """One batch an item. Asking anew ends what was asked before."""
        batches = self._from_workers(items) if self._workers and items else map(self._make, items)
        return self._ahead(batches) if len(items) > 1 and cores() > 1 else batches

    def _make(self, item: Item) -> Made:
        return pinned(self._maker[item]) if self._pin else self._maker[item]

    def _ahead(self, batches: Iterator[Made]) -> Iterator[Made]:
        """The same, each got by a thread while the one before is used."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="batches")  # one for all that is asked: makers are not made for two
        coming = self._thread.submit(next, batches, None)
        while (made := coming.result()) is not None:
            coming = self._thread.submit(next, batches, None)
            yield made

    def _from_workers(self, items: Sequence[Item]) -> Iterator[Made]:
        self._items.items = items
        if self._loader is None:
            _, used = lay_out(self._maker[items[0]])
            self._blocks = torch.empty(self._items.slots, max(SMALLEST_BLOCK, used * 3 // 2), dtype=torch.uint8).share_memory_()
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload([__name__])  # torch is imported once, not by every worker
            self._loader = DataLoader(
                _Writer(self._maker, self._blocks),
                sampler=self._items,
                batch_size=None,
                collate_fn=_as_it_is,
                num_workers=self._workers,
                prefetch_factor=self._prefetch,
                multiprocessing_context=context,
                persistent_workers=True,
            )
        assert self._blocks is not None
        for slot, used, batch in self._loader:
            if slot is not None:
                yield owned(batch, used, self._blocks[slot], self._pin)
            else:
                yield pinned(batch) if self._pin else batch


class _Numbered:
    """Items with the slots of the ring that they take; the DataLoader asks for them anew each epoch."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.items: Sequence[Any] = ()

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return ((number % self.slots, item) for number, item in enumerate(self.items))

    def __len__(self) -> int:
        return len(self.items)


class _Writer(Dataset[tuple[int | None, int, Any]]):
    """In a worker: makes a batch and writes it into its block; one that is too large is sent through the queue."""

    def __init__(self, maker: Maker[Any, Any], blocks: Tensor) -> None:
        self.maker, self.blocks = maker, blocks

    def __getitem__(self, numbered: tuple[int, Any]) -> tuple[int | None, int, Any]:
        slot, item = numbered
        batch = self.maker[item]
        places, used = lay_out(batch)
        if used > self.blocks.shape[1]:
            return None, used, batch
        write(batch, places, self.blocks[slot])
        return slot, used, places


def _as_it_is(batch: Any) -> Any:
    return batch
