"""Where the values of an offloaded table are stored: the device's cache, the host's records, whole states.

Of the cache's slots the first ``hot`` belong to the rows of the same numbers for good; the host has records
for all other rows, in order.
"""

import logging
import math
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from storage.tables.host import Host
from storage.tables.records import ROWS, Field, Records, full
from storage.tables.streaming import Section, spans
from storage.tables.transfer import TransferKind, choose_transfer

log = logging.getLogger(__name__)

FREE_SHARE = 0.8  # of the device's free memory; the rest is for the step
RECENT = 0.1  # least of the cache for rows that are not hot: under one point of hits off the best split


class StateInitializer(Protocol):
    """The part of an optimizer that a table needs."""

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """State before the first step, one row per row."""
        ...


class RowStorage:
    """Cache, host and whole states, filled with rows and their first state; arguments as in Offloaded, and
    ``window`` is its (lookahead, batch).

    On the device ``cache`` has a record a slot, so that one copy moves a row and its state; ``cells`` are its
    fields, (slots, *shape), of which ``hot`` and ``recent`` are the slots of either kind, and ``wide`` a
    state of one number per row, (tokens, *shape), of the whole table.
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
        window: tuple[int, Tensor | None],
    ) -> None:
        self.rows, self.device = start.shape[0], device
        probe = torch.zeros(1, *start.shape[1:])
        state = optimizer.initial_state(probe)
        self.records = Records.of(probe, state, *types)
        whole = ((name, state[name]) for name in self.records.wide)
        empty = partial(torch.empty, device=device)
        self.wide = {name: empty(self.rows, *of.shape[1:], dtype=of.dtype) for name, of in whole}
        self.cache = self._allocate(min(cache_rows, self.rows))
        self.cells, slots = self.records.views(self.cache), len(self.cache)
        self.recent = 0 if slots == self.rows else recent_slots(slots, *window)
        self.hot = slots - self.recent
        self.host = Host(self.rows - self.hot, self.records.width, folder)
        self.start(start, optimizer)
        self.transfer = choose_transfer(transfer, self.host, device)

    def _allocate(self, wanted: int) -> Tensor:
        """The cache, halved until the device has room for it."""
        slots = wanted
        while True:
            try:
                cache = torch.empty(slots, self.records.width, dtype=torch.uint8, device=self.device)
                break
            except torch.OutOfMemoryError:
                if slots == 1:
                    raise
                slots //= 2
        if slots < wanted:
            message = "%s has no room for a cache of %d rows: it has %d, and more rows are moved"
            log.warning(message, self.device, wanted, slots)
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
        for name, tensor in self.wide.items():
            tensor[first:last] = values[name].to(self.device)

    def pieces(self, field: Field) -> Iterator[Tensor]:
        """A field of all rows in pieces, in full precision; of recent rows what the host has."""
        for first, last in spans(self.hot, field.nbytes):
            yield full(self.cells[field.name][first:last])
        for first, last in spans(len(self.host.data), self.records.width):
            yield full(self.records.view(self.host.data[first:last], field))

    def read(self, records: np.ndarray, numbers: Tensor, cache: Tensor, slots: Tensor) -> None:
        """Copies records of the host into ``cache``, uint8 (any, width), at ``slots``.

        Args:
            records: Their numbers: ids less ``hot``.
            numbers: The same on the device.
            cache: On the device.
            slots: On the device.
        """
        if len(records):
            self.transfer.read(self._where_asked(records, numbers), cache, slots)

    def write(self, records: np.ndarray, numbers: Tensor, cache: Tensor, slots: Tensor) -> None:
        """Copies ``cache`` at ``slots`` into records of the host."""
        if len(records):
            self.transfer.write(self._where_asked(records, numbers), cache, slots)

    def read_fields(self, records: np.ndarray, numbers: Tensor) -> dict[str, Tensor]:
        """The fields of records of the host, in new memory of the device."""
        block, places = self._block(len(records))
        self.read(records, numbers, block, places)
        return self.records.views(block)

    def write_fields(self, records: np.ndarray, numbers: Tensor, values: Mapping[str, Tensor]) -> None:
        """Copies fields that are on the device into records of the host."""
        block, places = self._block(len(records))
        for name, field in self.records.views(block).items():
            field.copy_(values[name])
        self.write(records, numbers, block, places)

    def _block(self, records: int) -> tuple[Tensor, Tensor]:
        shape = records, self.records.width
        block = torch.empty(shape, dtype=torch.uint8, device=self.device)
        return block, torch.arange(records, device=self.device)

    def _where_asked(self, records: np.ndarray, numbers: Tensor) -> Tensor:
        return numbers if self.transfer.device_gathers else torch.from_numpy(records)


def recent_slots(slots: int, lookahead: int, batch: Tensor | None) -> int:
    """Slots, of so many, that change: RECENT, or as many as look-ahead needs, all if they are too few.

    While a step runs, rows of ``lookahead`` batches behind it enter in place of rows whose step is over:
    (lookahead + 2) times a batch's cold rows. More of these slots leave fewer hot rows, and more are cold.
    """
    recent, wanted = 0, max(1, int(slots * RECENT))
    while recent < wanted:
        recent = min(wanted, slots)
        cold = 0 if batch is None else int((batch >= slots - recent).sum())
        wanted = min((lookahead + 2) * cold, slots)
    return recent


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
    """Rows, of ``rows`` like ``row``, that ``cache_bytes`` hold (0: four fifths of what the device has free).

    Raises:
        ValueError: Whole states leave no room for a row.
    """
    state = optimizer.initial_state(row)
    records = Records.of(row, state, row_dtype, state_dtype)
    budget = cache_bytes or int(FREE_SHARE * free_bytes(device))
    whole = rows * sum(math.prod(state[name].shape[1:]) * state[name].dtype.itemsize for name in records.wide)
    fit = (budget - whole) // records.width
    if fit < 1:
        remedy = "give cache_bytes more, or take an optimizer without row-wise state"
        beside = f"beside the {whole:,} bytes of row-wise state that stay on the device"
        raise ValueError(f"{budget:,} bytes hold no row of {records.width:,} bytes {beside}; {remedy}")
    return min(fit, rows)


def free_bytes(device: torch.device) -> int:
    """Free memory of a device; all memory where the system does not say what is free (macOS)."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    known = "SC_AVPHYS_PAGES" in os.sysconf_names
    return os.sysconf("SC_AVPHYS_PAGES" if known else "SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
