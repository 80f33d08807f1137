"""A table larger than the device: its rows in host memory, those in use and the frequent ones in a cache.

A step sees exactly what a resident table would give it: rows are moved, never computed with. Types narrower
than float32 are rounded at every write-back, wherever the row is.

    batches ─▶ planner ─▶ transfer ─▶ cache ─▶ gather ─▶ step ─▶ write_back ─▶ cache ─▶ transfer ─▶ host
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from storage.tables.planner import NEVER, CachePlan, Planner
from storage.tables.prefetch import Prefetcher, Steps
from storage.tables.records import NARROW, ROWS, Field, full, full_type, round_
from storage.tables.row_storage import RowStorage, StateInitializer
from storage.tables.streaming import Section, spans, whole
from storage.tables.transfer import TransferKind, upload

B = TypeVar("B")
COUNTER = "roundings"


@dataclass(frozen=True)
class Ready:
    """A batch whose rows are in their slots; the tensors are on the device, valid behind ``event``.

    On a GPU they are parts of one, so that what is recorded of one holds for all.
    """

    plan: CachePlan
    event: Any
    ids: Tensor
    slots: Tensor
    direct: Tensor
    kept: Tensor  # positions of the rows that have a slot; empty where all have


class Offloaded:
    """Rows and state in host memory (or a mapped file), with a cache on the device.

    Args:
        start: The initial rows, float32 (tokens, dim), frequent ones first.
        lookahead: Batches whose rows are prefetched while a step runs.
        row_dtype: float32, float16 or bfloat16.
        state_dtype: Likewise, for states with a row's shape; states of one number per row are float32.
        folder: Of a scratch file for the records; None holds them in memory.
        seed: Of stochastic rounding.
        batch: Ids of a typical batch, which size the part of the cache that changes; None: a tenth.
    """

    def __init__(
        self,
        start: Section,
        optimizer: StateInitializer,
        *,
        device: torch.device | str = "cpu",
        cache_rows: int,
        lookahead: int = 2,
        row_dtype: torch.dtype = torch.float32,
        state_dtype: torch.dtype = torch.float32,
        transfer: TransferKind = "auto",
        folder: Path | None = None,
        seed: int = 0,
        batch: Tensor | None = None,
    ) -> None:
        if cache_rows < 1:
            raise ValueError(f"cache_rows is {cache_rows}; a cache needs one row or more")
        self.device, self.lookahead, self.seed = torch.device(device), lookahead, seed
        # which GPU "cuda" without a number is depends on the thread
        if self.device.type == "cuda" and self.device.index is None:
            self.device = torch.device("cuda", torch.cuda.current_device())
        about = (row_dtype, state_dtype), transfer, folder, (lookahead, batch)
        self.storage = RowStorage(start, optimizer, self.device, cache_rows, *about)
        on_gpu = self.device.type == "cuda"
        # rows enter on one stream behind those that leave on the other, beside the next plan's that leave
        self._stream, self._leaving = (torch.cuda.Stream(self.device) if on_gpu else None for _ in range(2))
        self._current: Ready | None = None
        self._prefetcher: Prefetcher[Any, Ready] | None = None
        self._failed: BaseException | None = None
        self._moving = threading.Lock()
        self._rounds = any(field.dtype in NARROW for field in self.storage.records.fields)
        self._roundings = 0
        self._empty_cache()

    def __len__(self) -> int:
        return self.storage.rows

    def ahead(self, batches: Iterable[B], ids: Callable[[B], Tensor]) -> Iterator[B]:
        """As in Resident; prefetches the rows of the next ``lookahead`` batches while a step runs.

        Raises:
            RuntimeError: Another ``ahead`` or a ``restore`` has ended this loop, or a transfer failed.
        """
        self._settle()
        if self._leaving is not None:
            self._leaving.wait_stream(torch.cuda.current_stream(self.device))
        about = self.planner, self.carry_out, self._steps, self.lookahead
        prefetcher = self._prefetcher = Prefetcher(batches, ids, *about)
        try:
            for batch, ready in prefetcher:
                self._current = ready
                yield batch
                if self._prefetcher is not prefetcher:
                    cause = "within this loop the table was restored or another loop over it begun"
                    raise RuntimeError(f"{cause}: its rows have moved; finish or leave it first")
                self._current = None
                self._wait_for_rows(ready)  # where no step has: rows that leave wait for the step alone
                self._steps.done(ready.plan.number)
        finally:
            if self._prefetcher is prefetcher:
                self._close()

    def gather(self, ids: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """As in Resident; outside ``ahead`` rows are read from where they are, and stay there."""
        at = self._locate(ids)
        self._wait_for_rows(at)
        self._check_order(at, ids)
        found = {name: cells.index_select(0, at.slots) for name, cells in self.storage.cells.items()}
        if len(at.direct):
            for name, values in self.storage.read_fields(*self._direct(at)).items():
                found[name].index_copy_(0, at.direct, values)
        state = {name: full(values) for name, values in found.items()}
        state |= {name: tensor.index_select(0, at.ids) for name, tensor in self.storage.wide.items()}
        return state.pop(ROWS), state

    def write_back(self, ids: Tensor, rows: Tensor, state: Mapping[str, Tensor]) -> None:
        """As in Resident; narrow types are rounded here."""
        at = self._locate(ids)
        self._check_order(at, ids)
        values = {ROWS: rows, **state}
        stored: dict[str, Tensor] = {}
        for number, field in enumerate(self.storage.records.fields):
            value, seed = values[field.name], self.seed * 64 + number
            if field.dtype != value.dtype:
                rounded = round_(value.flatten(1), field.dtype, at.ids, seed, self._roundings)
                value = rounded.view(value.shape)
            stored[field.name] = value
        self._roundings += 1
        slots = at.slots
        if len(at.direct):
            direct = {name: value.index_select(0, at.direct) for name, value in stored.items()}
            self.storage.write_fields(*self._direct(at), direct)
            slots = slots.index_select(0, at.kept)
            stored = {name: value.index_select(0, at.kept) for name, value in stored.items()}
        for name, value in stored.items():
            self.storage.cells[name].index_copy_(0, slots, value)
        for name, tensor in self.storage.wide.items():
            tensor.index_copy_(0, at.ids, state[name])

    def carry_out(self, plan: CachePlan) -> Ready:
        """Moves the rows of a plan, on the prefetcher's thread and streams."""
        storage, hot = self.storage, self.storage.hot
        leave, enter = plan.leave_ids - hot, plan.enter_ids - hot
        moved = leave, plan.leave_slots, enter, plan.enter_slots
        with self._on(self._leaving):
            self._steps.wait(plan.after)
            leaving, leave_slots, entering, enter_slots, *parts = upload(
                [*moved, *_of_step(plan)], self.device
            )
            with self._moving:
                storage.write(leave, leaving, storage.cache, leave_slots)
                if self._stream is not None and self._leaving is not None:
                    self._stream.wait_event(self._leaving.record_event())
                    entering.record_stream(self._stream)  # a loop that is left drops the plan
                with self._on(self._stream):
                    storage.read(enter, entering, storage.cache, enter_slots)
                self._holds[plan.leave_slots - hot] = -1
                self._holds[plan.enter_slots - hot] = plan.enter_ids
        return Ready(plan, self._stream.record_event() if self._stream is not None else None, *parts)

    def sections(self) -> dict[str, Section]:
        """As in Resident, also between two batches; writes cached rows to the host first."""
        sections = {_key(name): whole(tensor) for name, tensor in self.storage.wide.items()}
        for field in self.storage.records.fields:
            dtype, shape = full_type(field.dtype), (len(self), *field.shape)
            sections[_key(field.name)] = Section(dtype, shape, partial(self._pieces, field))
        if self._rounds:
            sections[COUNTER] = Section(torch.int64, (1,), lambda: [torch.tensor([self._roundings])])
        return sections

    def restore(self, read: Callable[[str], Any]) -> None:
        """As in Resident."""
        self._settle(wait_for_gpu=True)
        saved = {name: read(_key(name)) for name in (*self.storage.cells, *self.storage.wide)}
        for first, last in spans(len(self), self.storage.records.width):
            self.storage.fill(first, {name: values[first:last] for name, values in saved.items()})
        if self._rounds:
            self._roundings = int(read(COUNTER)[:])
        self._empty_cache()

    def start_from(self, start: Section, optimizer: StateInitializer) -> None:
        """Replaces all rows, and resets their state."""
        self._settle(wait_for_gpu=True)
        self.storage.start(start, optimizer)
        self._empty_cache()

    def _empty_cache(self) -> None:
        self.planner = Planner(len(self), self.storage.hot, self.storage.recent)
        self._steps = Steps(self.device)
        # ids in the recent part as the transfers left it; the planner is ahead of it
        self._holds = np.full(self.storage.recent, -1, dtype=np.int64)

    def _pieces(self, field: Field) -> Iterator[Tensor]:
        """A field of all rows, with the recent part of the cache written to the host.

        From here to the next step a move between the two changes no value, so transfers may go on while the
        host is read.
        """
        self._check()
        stream = torch.cuda.current_stream(self.device) if self._stream is not None else None
        with self._moving:
            if stream is not None:
                stream.wait_stream(self._stream)  # pyright: ignore[reportArgumentType]
            held = np.flatnonzero(self._holds >= 0)
            records = self._holds[held] - self.storage.hot
            numbers, slots = upload([records, held + self.storage.hot], self.device)
            self.storage.write(records, numbers, self.storage.cache, slots)
            if stream is not None:
                stream.synchronize()
        yield from self.storage.pieces(field)

    def _settle(self, wait_for_gpu: bool = False) -> None:
        """Ends the loop under way; ``wait_for_gpu``: and its kernels, which may still write to the host."""
        self._close()
        self._check()
        if wait_for_gpu and self._stream is not None:
            torch.cuda.synchronize(self.device)

    def _check(self) -> None:
        """Raises if a transfer failed: the table no longer knows where its rows are."""
        if failed := self._failed or (self._prefetcher and self._prefetcher.failed):
            remedy = "build the table again and resume from a checkpoint"
            raise RuntimeError(f"a transfer failed and rows are lost; {remedy}") from failed

    def _close(self) -> None:
        self._current = None
        prefetcher, self._prefetcher = self._prefetcher, None
        if prefetcher is not None:
            prefetcher.close()
            self._failed = self._failed or prefetcher.failed
            if self._stream is not None:
                torch.cuda.current_stream(self.device).wait_stream(self._stream)

    def _locate(self, ids: Tensor) -> Ready:
        if self._current is None:
            self._settle()
            wanted = ids.cpu().numpy()
            slots = self.planner.locate(wanted)
            direct, none = np.flatnonzero(slots < 0), np.zeros(0, dtype=np.int64)
            plan = CachePlan(NEVER, wanted, slots.clip(0), direct, none, none, none, none, NEVER)
            return Ready(plan, None, *upload(_of_step(plan), self.device))
        planned, on_cpu = self._current.plan.ids, ids.device.type == "cpu"
        if len(planned) != len(ids) or (on_cpu and not np.array_equal(planned, ids.numpy())):
            expected = "a step gathers the ids that `ahead` was given, in the same order"
            raise ValueError(
                f"gather got {len(ids)} rows that are not the {len(planned)} of the batch; {expected}"
            )
        return self._current

    def _check_order(self, at: Ready, ids: Tensor) -> None:
        """Checks ids that are on a GPU against the plan, there: the host does not wait for them."""
        if ids.device.type == "cuda":
            wrong = "gather got other rows than those of the batch, or in another order"
            torch._assert_async((ids == at.ids).all(), wrong)  # pyright: ignore[reportPrivateImportUsage]

    def _wait_for_rows(self, at: Ready) -> None:
        if at.event is not None:
            stream = torch.cuda.current_stream(self.device)
            stream.wait_event(at.event)
            at.ids.record_stream(stream)

    def _direct(self, at: Ready) -> tuple[np.ndarray, Tensor]:
        """Records of rows without a slot, and the same on the device."""
        hot = self.storage.hot
        return at.plan.ids[at.plan.direct] - hot, at.ids.index_select(0, at.direct) - hot

    def _on(self, stream: torch.cuda.Stream | None) -> AbstractContextManager[Any]:
        return torch.cuda.stream(stream) if stream is not None else nullcontext()


def _of_step(plan: CachePlan) -> list[np.ndarray]:
    """What a step needs of a plan on the device, as in Ready."""
    kept = np.delete(np.arange(len(plan.ids)), plan.direct) if len(plan.direct) else plan.direct
    return [plan.ids, plan.slots, plan.direct, kept]


def _key(name: str) -> str:
    """A tensor's name in a checkpoint, as Resident has it."""
    return name if name == ROWS else f"state.{name}"
