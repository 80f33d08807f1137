"""Table larger than device memory: rows are in host memory, and a cache holds frequent and current rows.

Training gives the same rows as with a resident table, bit for bit, because transfers only copy rows. With a
type narrower than float32, values are rounded at every write-back, whether or not the row is in the cache.

    batches ─▶ planner ─▶ transfer ─▶ cache ─▶ gather ─▶ step ─▶ write_back ─▶ cache ─▶ transfer ─▶ host
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from storage.tables.eviction import DEFAULT_EVICTION, Eviction
from storage.tables.planner import CachePlan, Planner
from storage.tables.prefetch import Prefetcher, ReadyBatch, Steps
from storage.tables.records import NARROW_DTYPES, ROW_FIELD, Field, compute_dtype, quantize, to_compute_dtype
from storage.tables.row_storage import RowStorage, StateInitializer
from storage.tables.statistics import Statistics
from storage.tables.streaming import Section, as_section, divide_rows
from storage.tables.transfer import TransferKind, upload

BatchT = TypeVar("BatchT")
ROUNDINGS = "roundings"  # name of the tensor in a checkpoint that contains the number of roundings


class Offloaded:
    """Table whose rows and optimizer state are in host memory or a mapped file, with a cache on the device.

    Args:
        start: Initial rows, float32 (tokens, dim), most frequent first.
        optimizer: Creates the initial state of the rows.
        device: Device of the cache and of the training step.
        cache_rows: Number of rows in the cache.
        lookahead: Number of batches whose rows are prefetched while a step runs.
        row_dtype: Type in which rows are stored: float32, float16 or bfloat16.
        state_dtype: Type in which states are stored. States with one number per row are always float32.
        transfer: "uva", "staged" or "auto", see ``choose_transfer``.
        folder: Folder of a scratch file for the records; None: the records are stored in memory.
        seed: Seed of stochastic rounding.
        batch: Ids of a typical batch, from which the number of permanently cached rows is computed; None:
            nine tenths of the cache.
        eviction: Policy that chooses the cached rows.

    Attributes:
        statistics: Counts of rows, cache hits, transferred bytes and waits.
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
        eviction: Eviction = DEFAULT_EVICTION,
    ) -> None:
        if cache_rows < 1:
            raise ValueError(f"cache_rows must be at least 1, got {cache_rows}")
        self.device, self.lookahead, self.seed = torch.device(device), lookahead, seed
        # "cuda" without an index means the current device, which may differ between threads.
        if self.device.type == "cuda" and self.device.index is None:
            self.device = torch.device("cuda", torch.cuda.current_device())
        self._eviction, recent = eviction, partial(eviction.recent, lookahead=lookahead, batch=batch)
        dtypes = row_dtype, state_dtype
        self.storage = RowStorage(start, optimizer, self.device, cache_rows, dtypes, transfer, folder, recent)
        self.statistics = Statistics(self.storage.records.width)
        on_gpu = self.device.type == "cuda"
        # Reads of a plan wait for the writes of the same plan, and overlap with the writes of the next plan.
        self._read_stream = torch.cuda.Stream(self.device) if on_gpu else None
        self._write_stream = torch.cuda.Stream(self.device) if on_gpu else None
        self._current: ReadyBatch | None = None
        self._prefetcher: Prefetcher[Any, ReadyBatch] | None = None
        self._error: BaseException | None = None
        self._transfer_lock = threading.Lock()
        self._has_narrow_fields = any(field.dtype in NARROW_DTYPES for field in self.storage.records.fields)
        self._roundings = 0
        self._empty_cache()

    def __len__(self) -> int:
        return self.storage.rows

    def prefetch(self, batches: Iterable[BatchT], ids: Callable[[BatchT], Tensor]) -> Iterator[BatchT]:
        """Iterates over batches, and prefetches the rows of the next ``lookahead`` batches while a step runs.

        Raises:
            RuntimeError: Another ``prefetch`` or a ``restore`` ended this loop, or a transfer failed.
        """
        self._finish_loop()
        if self._write_stream is not None:
            self._write_stream.wait_stream(torch.cuda.current_stream(self.device))
        prefetcher = Prefetcher(batches, ids, self.planner, self.execute, self._steps, self.lookahead)
        self._prefetcher = prefetcher
        try:
            for batch, ready_batch in self.statistics.count_batches(prefetcher):
                self._current = ready_batch
                yield batch
                if self._prefetcher is not prefetcher:
                    problem = "the table was restored, or another `prefetch` began, before this loop ended"
                    raise RuntimeError(f"{problem}; finish or leave the loop first")
                self._current = None
                self._wait_for_rows(ready_batch)  # without a step, nothing has waited for the transfers
                self._steps.done(ready_batch.plan.number)
        finally:
            if self._prefetcher is prefetcher:
                self._close_prefetcher()

    def gather(self, ids: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns copies of distinct rows, (unique, dim), and of their optimizer state by name."""
        batch = self._find_batch(ids)
        if self._current is None:
            self.statistics.begin_batch(batch.plan)
        self._wait_for_rows(batch)
        self._check_order(batch, ids)
        cells = self.storage.cells.items()
        gathered_values = {name: values.index_select(0, batch.slots) for name, values in cells}
        if len(batch.direct):
            self.statistics.bytes_to_device += len(batch.direct) * self.statistics.record_bytes
            for name, values in self.storage.read_fields(*self._uncached_records(batch)).items():
                gathered_values[name].index_copy_(0, batch.direct, values)
        state = {name: to_compute_dtype(values) for name, values in gathered_values.items()}
        state |= {
            name: tensor.index_select(0, batch.ids) for name, tensor in self.storage.row_scalars.items()
        }
        return state.pop(ROW_FIELD), state

    def write_back(self, ids: Tensor, rows: Tensor, state: Mapping[str, Tensor]) -> None:
        """Replaces the rows ``ids`` and their state; values of narrow types are rounded."""
        batch = self._find_batch(ids)
        self._check_order(batch, ids)
        new_values = {ROW_FIELD: rows, **state}
        stored_values: dict[str, Tensor] = {}
        for index, field in enumerate(self.storage.records.fields):
            value, seed = new_values[field.name], self.seed * 64 + index
            if field.dtype != value.dtype:
                rounded_value = quantize(value.flatten(1), field.dtype, batch.ids, seed, self._roundings)
                value = rounded_value.view(value.shape)
            stored_values[field.name] = value
        self._roundings += 1
        slots = batch.slots
        if len(batch.direct):
            host_values = {name: value.index_select(0, batch.direct) for name, value in stored_values.items()}
            self.statistics.bytes_to_host += len(batch.direct) * self.statistics.record_bytes
            self.storage.write_fields(*self._uncached_records(batch), host_values)
            slots = slots.index_select(0, batch.with_slot)
            positions = batch.with_slot
            stored_values = {name: value.index_select(0, positions) for name, value in stored_values.items()}
        for name, value in stored_values.items():
            self.storage.cells[name].index_copy_(0, slots, value)
        for name, tensor in self.storage.row_scalars.items():
            tensor.index_copy_(0, batch.ids, state[name])

    def execute(self, plan: CachePlan) -> ReadyBatch:
        """Transfers the rows of a plan. Only the transfer thread of the prefetcher calls this method."""
        storage, hot_rows = self.storage, self.storage.hot
        leaving_records, entering_records = plan.leave_ids - hot_rows, plan.enter_ids - hot_rows
        transfers = leaving_records, plan.leave_slots, entering_records, plan.enter_slots
        with self._use_stream(self._write_stream):
            self._steps.wait(plan.depends_on_step)
            arrays = upload([*transfers, *plan.step_arrays()], self.device)
            leaving_on_device, leave_slots, entering_on_device, enter_slots, *step_tensors = arrays
            with self._transfer_lock:
                storage.write(leaving_records, leaving_on_device, storage.cache, leave_slots)
                if self._read_stream is not None and self._write_stream is not None:
                    self._read_stream.wait_event(self._write_stream.record_event())
                    # the plan may be freed if the loop ends early
                    entering_on_device.record_stream(self._read_stream)
                with self._use_stream(self._read_stream):
                    storage.read(entering_records, entering_on_device, storage.cache, enter_slots)
                self._slot_ids[plan.leave_slots - hot_rows] = -1
                self._slot_ids[plan.enter_slots - hot_rows] = plan.enter_ids
        event = self._read_stream.record_event() if self._read_stream is not None else None
        return ReadyBatch(plan, event, *step_tensors)

    def sections(self) -> dict[str, Section]:
        """Writes cached rows to the host, and returns the tensors of a checkpoint as sections by name."""
        sections = {
            _section_name(name): as_section(tensor) for name, tensor in self.storage.row_scalars.items()
        }
        for field in self.storage.records.fields:
            dtype, shape = compute_dtype(field.dtype), (len(self), *field.shape)
            sections[_section_name(field.name)] = Section(dtype, shape, partial(self._pieces, field))
        if self._has_narrow_fields:
            sections[ROUNDINGS] = Section(torch.int64, (1,), lambda: [torch.tensor([self._roundings])])
        return sections

    def restore(self, read: Callable[[str], Any]) -> None:
        """Loads a checkpoint of a table of this size; ``read(name)[first:last]`` reads rows of a tensor."""
        self._finish_loop(wait_for_gpu=True)
        names = *self.storage.cells, *self.storage.row_scalars
        saved_tensors = {name: read(_section_name(name)) for name in names}
        for first, last in divide_rows(len(self), self.storage.records.width):
            self.storage.fill(first, {name: values[first:last] for name, values in saved_tensors.items()})
        if self._has_narrow_fields:
            self._roundings = int(read(ROUNDINGS)[:])
        self._empty_cache()

    def start_from(self, start: Section, optimizer: StateInitializer) -> None:
        """Replaces all rows, and resets their optimizer state."""
        self._finish_loop(wait_for_gpu=True)
        self.storage.start(start, optimizer)
        self._empty_cache()

    def _empty_cache(self) -> None:
        hot_rows, recent = self.storage.hot, self.storage.recent
        order = self._eviction.order(len(self), recent, self.lookahead)
        self.planner = Planner(len(self), hot_rows, recent, order)
        self._steps = Steps(self.device)
        # Rows in the recent slots after the executed plans; the planner already knows later plans.
        self._slot_ids = np.full(self.storage.recent, -1, dtype=np.int64)

    def _pieces(self, field: Field) -> Iterator[Tensor]:
        """Writes the rows in recent slots to the host, and yields a field of all rows in pieces.

        Transfers may continue meanwhile, because until the next step they do not change the values of rows.
        """
        self._check_transfers()
        stream = torch.cuda.current_stream(self.device) if self._read_stream is not None else None
        with self._transfer_lock:
            if stream is not None:
                stream.wait_stream(self._read_stream)  # pyright: ignore[reportArgumentType]
            occupied_slots = np.flatnonzero(self._slot_ids >= 0)
            records = self._slot_ids[occupied_slots] - self.storage.hot
            device_records, slots = upload([records, occupied_slots + self.storage.hot], self.device)
            self.storage.write(records, device_records, self.storage.cache, slots)
            if stream is not None:
                stream.synchronize()
        yield from self.storage.pieces(field)

    def _finish_loop(self, wait_for_gpu: bool = False) -> None:
        """Ends ``prefetch``; if ``wait_for_gpu``, waits for kernels that may still write to the host."""
        self._close_prefetcher()
        self._check_transfers()
        if wait_for_gpu and self._read_stream is not None:
            torch.cuda.synchronize(self.device)

    def _check_transfers(self) -> None:
        """Raises a RuntimeError if a transfer has failed, because rows may be lost."""
        if error := self._error or (self._prefetcher and self._prefetcher.error):
            remedy = "build the table again and resume from a checkpoint"
            raise RuntimeError(f"a transfer failed, and rows are lost; {remedy}") from error

    def _close_prefetcher(self) -> None:
        self._current = None
        prefetcher, self._prefetcher = self._prefetcher, None
        if prefetcher is not None:
            prefetcher.close()
            self._error = self._error or prefetcher.error
            if self._read_stream is not None:
                torch.cuda.current_stream(self.device).wait_stream(self._read_stream)

    def _find_batch(self, ids: Tensor) -> ReadyBatch:
        """Returns the current batch of ``prefetch``; outside of ``prefetch``, plans a batch of ``ids``."""
        if self._current is None:
            self._finish_loop()
            plan = self.planner.plan_in_place(ids.cpu().numpy())
            return ReadyBatch(plan, None, *upload(plan.step_arrays(), self.device))
        planned_ids, is_on_cpu = self._current.plan.ids, ids.device.type == "cpu"
        if len(planned_ids) != len(ids) or (is_on_cpu and not np.array_equal(planned_ids, ids.numpy())):
            problem = f"the {len(ids)} ids of `gather` are not the {len(planned_ids)} ids of the batch"
            raise ValueError(f"{problem}; gather the ids passed to `prefetch`, in the same order")
        return self._current

    def _check_order(self, batch: ReadyBatch, ids: Tensor) -> None:
        """Asserts, for ids on a GPU, that they equal the ids of the batch; does not synchronize."""
        if ids.device.type == "cuda":
            problem = "the ids of gather differ from the ids of the batch, or are in another order"
            torch._assert_async((ids == batch.ids).all(), problem)  # pyright: ignore[reportPrivateImportUsage]

    def _wait_for_rows(self, batch: ReadyBatch) -> None:
        if batch.event is not None:
            stream = torch.cuda.current_stream(self.device)
            stream.wait_event(batch.event)
            batch.ids.record_stream(stream)

    def _uncached_records(self, batch: ReadyBatch) -> tuple[np.ndarray, Tensor]:
        """Returns the record numbers of the rows without a slot, first on the CPU, then on the device."""
        plan, hot_rows = batch.plan, self.storage.hot
        return plan.ids[plan.direct] - hot_rows, batch.ids.index_select(0, batch.direct) - hot_rows

    def _use_stream(self, stream: torch.cuda.Stream | None) -> AbstractContextManager[Any]:
        return torch.cuda.stream(stream) if stream is not None else nullcontext()


def _section_name(name: str) -> str:
    """Returns the name of a field in a checkpoint of this table and of ``Resident``."""
    return name if name == ROW_FIELD else f"state.{name}"
