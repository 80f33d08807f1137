"""Memory of an offloaded table: cache and row scalars on the device, records on the host.

records.py explains records and row scalars. The first ``hot`` slots of the cache permanently contain the
first ``hot`` rows. The host has records for all other rows, in order.
"""

import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from storage.tables.host import Host
from storage.tables.records import ROWS, Field, Records, to_compute_dtype
from storage.tables.streaming import Section, spans
from storage.tables.transfer import TransferKind, choose_transfer

log = logging.getLogger(__name__)

FREE_SHARE = 0.8  # share of the free device memory for the cache; the step uses the rest


class StateInitializer(Protocol):
    """What a table requires of an optimizer."""

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """Returns the state before the first step, with one entry per row."""
        ...


class RowStorage:
    """Cache, host records and row scalars, initialized with rows and their initial state.

    The arguments are those of Offloaded. ``recent_slots`` is a function from the number of slots to the
    number of slots whose rows may be evicted.

    Attributes:
        cache: uint8 (slots, width) on the device, one record per slot.
        cells: Views of the fields of the cache by name, (slots, *shape).
        hot: Number of permanent slots.
        recent: Number of other slots, whose rows change.
        row_scalars: States of one number per row by name, (tokens, *shape), on the device.
    """

    def __init__(
        self,
        start: Section,
        optimizer: StateInitializer,
        device: torch.device,
        cache_rows: int,
        types: tuple[torch.dtype, torch.dtype],
        transfer: TransferKind,
        folder: Path | None,
        recent_slots: Callable[[int], int],
    ) -> None:
        self.rows, self.device = start.shape[0], device
        probe = torch.zeros(1, *start.shape[1:])
        state = optimizer.initial_state(probe)
        self.records = Records.lay_out(probe, state, *types)
        scalars = ((name, state[name]) for name in self.records.row_scalars)
        empty = partial(torch.empty, device=device)
        self.row_scalars = {
            name: empty(self.rows, *example.shape[1:], dtype=example.dtype) for name, example in scalars
        }
        self.cache = self._allocate(min(cache_rows, self.rows))
        self.cells, slots = self.records.views(self.cache), len(self.cache)
        self.recent = 0 if slots == self.rows else recent_slots(slots)
        self.hot = slots - self.recent
        self.host = Host(self.rows - self.hot, self.records.width, folder)
        self.start(start, optimizer)
        self.transfer = choose_transfer(transfer, self.host, device)

    def _allocate(self, requested: int) -> Tensor:
        """Allocates the cache, halving its size until it fits into device memory."""
        slots = requested
        while True:
            try:
                cache = torch.empty(slots, self.records.width, dtype=torch.uint8, device=self.device)
                break
            except torch.OutOfMemoryError:
                if slots == 1:
                    raise
                slots //= 2
        if slots < requested:
            message = "%s has no memory for a cache of %d rows; the cache has %d, so more rows are moved"
            log.warning(message, self.device, requested, slots)
        return cache

    def start(self, start: Section, optimizer: StateInitializer) -> None:
        """Stores all rows and their initial state."""
        first = 0
        for piece in start.pieces():
            self.fill(first, {ROWS: piece.cpu(), **optimizer.initial_state(piece.cpu())})
            first += len(piece)

    def fill(self, first: int, values: Mapping[str, Tensor]) -> None:
        """Stores consecutive rows and their state; narrow types are rounded to nearest."""
        last = first + len(values[ROWS])
        hot = max(0, min(self.hot, last) - first)
        records = self.host.data[first + hot - self.hot : last - self.hot] if first + hot < last else None
        for field in self.records.fields:
            self.cells[field.name][first : first + hot] = values[field.name][:hot].to(self.device)
            if records is not None:
                self.records.view(records, field).copy_(values[field.name][hot:])
        for name, tensor in self.row_scalars.items():
            tensor[first:last] = values[name].to(self.device)

    def pieces(self, field: Field) -> Iterator[Tensor]:
        """Yields a field of all rows in pieces, without unwritten changes in recent slots."""
        for first, last in spans(self.hot, field.nbytes):
            yield to_compute_dtype(self.cells[field.name][first:last])
        for first, last in spans(len(self.host.data), self.records.width):
            yield to_compute_dtype(self.records.view(self.host.data[first:last], field))

    def read(self, records: np.ndarray, device_records: Tensor, cache: Tensor, slots: Tensor) -> None:
        """Copies host records into ``cache`` at ``slots``.

        Args:
            records: Record numbers (ids − ``hot``).
            device_records: The same numbers on the device.
            cache: uint8 (any, width), on the device.
            slots: Slot of each record, on the device.
        """
        if len(records):
            self.transfer.read(self._record_ids(records, device_records), cache, slots)

    def write(self, records: np.ndarray, device_records: Tensor, cache: Tensor, slots: Tensor) -> None:
        """Copies ``cache`` at ``slots`` into the host records with the numbers ``records``.

        ``device_records`` are the same numbers on the device.
        """
        if len(records):
            self.transfer.write(self._record_ids(records, device_records), cache, slots)

    def read_fields(self, records: np.ndarray, device_records: Tensor) -> dict[str, Tensor]:
        """Copies the fields of host records into new device memory."""
        block, slots = self._block(len(records))
        self.read(records, device_records, block, slots)
        return self.records.views(block)

    def write_fields(self, records: np.ndarray, device_records: Tensor, values: Mapping[str, Tensor]) -> None:
        """Copies fields on the device into host records."""
        block, slots = self._block(len(records))
        for name, field in self.records.views(block).items():
            field.copy_(values[name])
        self.write(records, device_records, block, slots)

    def _block(self, records: int) -> tuple[Tensor, Tensor]:
        shape = records, self.records.width
        block = torch.empty(shape, dtype=torch.uint8, device=self.device)
        return block, torch.arange(records, device=self.device)

    def _record_ids(self, records: np.ndarray, device_records: Tensor) -> Tensor:
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
    """Returns how many rows with their optimizer state fit into ``cache_bytes``, at most ``rows``.

    Args:
        rows: Number of rows of the table.
        row: An example row, float32 (1, dim).
        optimizer: Creates the state of a row.
        cache_bytes: Device memory for rows and state; 0: four fifths of the free memory.

    Raises:
        ValueError: The memory is too small for the row scalars and one row.
    """
    state = optimizer.initial_state(row)
    records = Records.lay_out(row, state, row_dtype, state_dtype)
    budget = cache_bytes or int(FREE_SHARE * free_bytes(device))
    scalar_bytes = rows * sum(
        math.prod(state[name].shape[1:]) * state[name].dtype.itemsize for name in records.row_scalars
    )
    fit = (budget - scalar_bytes) // records.width
    if fit < 1:
        remedy = "raise cache_bytes, or choose an optimizer without row-wise state"
        scalars = f"the {scalar_bytes:,} bytes of row-wise state that stay on the device"
        raise ValueError(
            f"{budget:,} bytes do not hold a row of {records.width:,} bytes and {scalars}; {remedy}"
        )
    return min(fit, rows)


def free_bytes(device: torch.device) -> int:
    """Returns the free memory of a device; on macOS, which does not report it, the total memory."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    reports_free = "SC_AVPHYS_PAGES" in os.sysconf_names
    return os.sysconf("SC_AVPHYS_PAGES" if reports_free else "SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
