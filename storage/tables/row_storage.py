"""Memory of an offloaded table: the cache and row scalars on the device, and the records on the host.

records.py explains records and row scalars. The first ``hot`` slots of the cache permanently contain the
first ``hot`` rows. The host has records for all other rows, in the order of the rows.
"""

import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from storage.tables.host import Host
from storage.tables.records import ROW_FIELD, Field, Records, to_compute_dtype
from storage.tables.streaming import Section, divide_rows
from storage.tables.transfer import TransferKind, choose_transfer

log = logging.getLogger(__name__)

FREE_SHARE = 0.8  # share of the free device memory for the cache; the step uses the rest


class StateInitializer(Protocol):
    """Interface that a table requires of an optimizer, whose state the table stores with its rows."""

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Returns the optimizer state of rows before the first step, by name: (rows, …)."""
        ...


class RowStorage:
    """Cache, host records and row scalars of an offloaded table.

    Args:
        start: Initial rows.
        optimizer: Creates the initial state of the rows.
        device: Device of the cache.
        cache_rows: Number of rows in the cache.
        dtypes: Types in which rows and states are stored.
        transfer: Kind of transfer, see ``choose_transfer``.
        folder: Folder of a scratch file for the records; None: the records are stored in memory.
        recent_slots: Function from the number of slots of the cache to the number of recent slots.

    Attributes:
        cache: Records in the cache, uint8 (slots, width), on the device.
        cells: Views of the fields of the cache by name, (slots, *shape).
        hot: Number of permanent slots.
        recent: Number of all other slots, whose rows are replaced by rows of later batches.
        row_scalars: States with one number per row by name, (tokens, *shape), on the device.
    """

    def __init__(
        self,
        start: Section,
        optimizer: StateInitializer,
        device: torch.device,
        cache_rows: int,
        dtypes: tuple[torch.dtype, torch.dtype],
        transfer: TransferKind,
        folder: Path | None,
        recent_slots: Callable[[int], int],
    ) -> None:
        self.rows, self.device = start.shape[0], device
        example_row = torch.zeros(1, *start.shape[1:])
        state = optimizer.initial_state(example_row)
        self.records = Records.lay_out(example_row, state, *dtypes)
        self.row_scalars = {
            name: torch.empty(self.rows, *state[name].shape[1:], dtype=state[name].dtype, device=device)
            for name in self.records.row_scalars
        }
        self.cache = self._allocate(min(cache_rows, self.rows))
        self.cells, slots = self.records.views(self.cache), len(self.cache)
        self.recent = 0 if slots == self.rows else recent_slots(slots)
        self.hot = slots - self.recent
        self.host = Host(self.rows - self.hot, self.records.width, folder)
        self.start(start, optimizer)
        self.transfer = choose_transfer(transfer, self.host, device)

    def _allocate(self, requested_slots: int) -> Tensor:
        """Allocates the cache; halves the number of slots until the cache fits into the device's memory."""
        slots = requested_slots
        while True:
            try:
                cache = torch.empty(slots, self.records.width, dtype=torch.uint8, device=self.device)
                break
            except torch.OutOfMemoryError:
                if slots == 1:
                    raise
                slots //= 2
        if slots < requested_slots:
            message = "%s has no memory for a cache of %d rows; the cache has %d, so more rows are moved"
            log.warning(message, self.device, requested_slots, slots)
        return cache

    def start(self, start: Section, optimizer: StateInitializer) -> None:
        """Stores all rows and their initial optimizer state."""
        first_row = 0
        for piece in start.pieces():
            self.fill(first_row, {ROW_FIELD: piece.cpu(), **optimizer.initial_state(piece.cpu())})
            first_row += len(piece)

    def fill(self, first: int, values: Mapping[str, Tensor]) -> None:
        """Stores consecutive rows and their state from row ``first`` on; narrow types are rounded to nearest.

        Args:
            first: Number of the first row.
            values: Rows (under the name ROW_FIELD) and optimizer states by name, (rows, …).
        """
        last = first + len(values[ROW_FIELD])
        hot_count = max(0, min(self.hot, last) - first)  # number of these rows that have permanent slots
        first_cold = first + hot_count
        records = self.host.data[first_cold - self.hot : last - self.hot] if first_cold < last else None
        for field in self.records.fields:
            self.cells[field.name][first:first_cold] = values[field.name][:hot_count].to(self.device)
            if records is not None:
                self.records.view(records, field).copy_(values[field.name][hot_count:])
        for name, tensor in self.row_scalars.items():
            tensor[first:last] = values[name].to(self.device)

    def pieces(self, field: Field) -> Iterator[Tensor]:
        """Yields a field of all rows in pieces. Rows in recent slots must have been written to the host."""
        for first, last in divide_rows(self.hot, field.nbytes):
            yield to_compute_dtype(self.cells[field.name][first:last])
        for first, last in divide_rows(len(self.host.data), self.records.width):
            yield to_compute_dtype(self.records.view(self.host.data[first:last], field))

    def read(self, records: np.ndarray, device_records: Tensor, cache: Tensor, slots: Tensor) -> None:
        """Copies host records into slots of ``cache``.

        Args:
            records: Numbers of the host records (row − ``hot``).
            device_records: ``records`` as a tensor on the device.
            cache: Records on the device, uint8 (slots, width): the cache or a temporary block.
            slots: Slot of each record, on the device.
        """
        if len(records):
            self.transfer.read(self._record_ids(records, device_records), cache, slots)

    def write(self, records: np.ndarray, device_records: Tensor, cache: Tensor, slots: Tensor) -> None:
        """Copies slots of ``cache`` into host records. The arguments are those of ``read``."""
        if len(records):
            self.transfer.write(self._record_ids(records, device_records), cache, slots)

    def read_fields(self, records: np.ndarray, device_records: Tensor) -> dict[str, Tensor]:
        """Copies host records into new device memory, and returns views of their fields by name."""
        block, slots = self._allocate_block(len(records))
        self.read(records, device_records, block, slots)
        return self.records.views(block)

    def write_fields(self, records: np.ndarray, device_records: Tensor, values: Mapping[str, Tensor]) -> None:
        """Copies values of fields, by name, from the device into host records."""
        block, slots = self._allocate_block(len(records))
        for name, field in self.records.views(block).items():
            field.copy_(values[name])
        self.write(records, device_records, block, slots)

    def _allocate_block(self, records: int) -> tuple[Tensor, Tensor]:
        """Returns device memory for records, uint8 (records, width), and the numbers of its slots."""
        shape = records, self.records.width
        block = torch.empty(shape, dtype=torch.uint8, device=self.device)
        return block, torch.arange(records, device=self.device)

    def _record_ids(self, records: np.ndarray, device_records: Tensor) -> Tensor:
        """Returns the record numbers on the device or on the CPU, depending on what the transfer requires."""
        return device_records if self.transfer.device_gathers else torch.from_numpy(records)


def affordable_rows(
    rows: int,
    row: Tensor,
    optimizer: StateInitializer,
    cache_bytes: int,
    device: torch.device,
    *,
    row_dtype: torch.dtype,
    state_dtype: torch.dtype,
) -> int:
    """Returns the number of rows, at most ``rows``, that fit into ``cache_bytes`` with their optimizer state.

    Args:
        rows: Number of rows of the table.
        row: Example row, float32 (1, dim).
        optimizer: Creates the state of a row.
        cache_bytes: Device memory for rows and state in bytes; 0: four fifths of the free memory.
        device: Device of the cache.
        row_dtype: Type in which rows are stored.
        state_dtype: Type in which states with the shape of rows are stored.

    Raises:
        ValueError: The memory is too small for the row scalars and one row.
    """
    state = optimizer.initial_state(row)
    records = Records.lay_out(row, state, row_dtype, state_dtype)
    budget_bytes = cache_bytes or int(FREE_SHARE * free_bytes(device))
    scalar_bytes = rows * sum(
        math.prod(state[name].shape[1:]) * state[name].dtype.itemsize for name in records.row_scalars
    )
    cached_rows = (budget_bytes - scalar_bytes) // records.width
    if cached_rows < 1:
        remedy = "raise cache_bytes, or choose an optimizer without row-wise state"
        scalars_text = f"the {scalar_bytes:,} bytes of row-wise state that stay on the device"
        problem = f"{budget_bytes:,} bytes do not hold a row of {records.width:,} bytes and {scalars_text}"
        raise ValueError(f"{problem}; {remedy}")
    return min(cached_rows, rows)


def free_bytes(device: torch.device) -> int:
    """Returns the free memory of a device in bytes; on macOS, which does not report it, the total memory."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    page_count_name = "SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in os.sysconf_names else "SC_PHYS_PAGES"
    return os.sysconf(page_count_name) * os.sysconf("SC_PAGE_SIZE")
