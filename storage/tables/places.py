"""Where the values of an offloaded table are: the cache on the device, the host's records, and what is on the device whole.

Of the ``slots`` of the cache the first ``hot`` belong to the rows of the same numbers for good; the host has records for
all other rows, in their order. A state of one number a row is on the device whole (storage/tables/records.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from storage.tables.host import Host
from storage.tables.records import ROWS, Field, Records, full
from storage.tables.streaming import Part, spans

log = logging.getLogger(__name__)

RECENT = 0.1  # share of the cache for rows that are not hot; 90 to 10 costs under one point of hits against the best split


class Starting(Protocol):
    """The part of a rule that a table needs."""

    def initial_state(self, rows: Tensor) -> dict[str, Tensor]:
        """State before the first step, one row a row."""
        ...


class Places:
    """Cache, host and whole states, filled with rows and their first state.

    Args:
        start: As in Offloaded, like ``rule``, ``device``, ``cache_rows`` and ``folder``.
        row_dtype: Of stored rows.
        state_dtype: Of stored states with a row's shape.

    Attributes:
        records: What the host keeps of a row.
        cells: By field, (slots, *shape), on the device.
        wide: By state of one number a row, (tokens, *shape), on the device.
        host: Records of the rows from ``hot`` on.
        hot, recent: Slots of either kind.
    """

    def __init__(self, start: Part, rule: Starting, *, device: torch.device, cache_rows: int, row_dtype: torch.dtype, state_dtype: torch.dtype, folder: Path | None) -> None:
        self.rows, self.device = start.shape[0], device
        probe = torch.zeros(1, *start.shape[1:])
        state = rule.initial_state(probe)
        self.records = Records.of(probe, state, row_dtype, state_dtype)
        self.wide = {name: torch.empty(self.rows, *state[name].shape[1:], dtype=state[name].dtype, device=device) for name in self.records.wide}
        self.cells, slots = self._allocate(min(cache_rows, self.rows))
        self.recent = 0 if slots == self.rows else max(1, int(slots * RECENT))
        self.hot = slots - self.recent
        self.host = Host(self.rows - self.hot, self.records.width, folder)
        self.start(start, rule)

    def _allocate(self, slots: int) -> tuple[dict[str, Tensor], int]:
        """The cache; half of it, and so on, where the device has no room, which is said once."""
        wanted = slots
        while True:
            try:
                cells = {field.name: torch.empty(slots, *field.shape, dtype=field.dtype, device=self.device) for field in self.records.fields}
                break
            except torch.OutOfMemoryError:
                if slots == 1:
                    raise
                slots = max(1, slots // 2)
        if slots < wanted:
            log.warning("%s has no room for a cache of %d rows: it has %d, and more rows are moved", self.device, wanted, slots)
        return cells, slots

    def start(self, start: Part, rule: Starting) -> None:
        """Puts all rows, and their state to its start."""
        first = 0
        for piece in start.pieces():
            self.fill(first, {ROWS: piece.cpu(), **rule.initial_state(piece.cpu())})
            first += len(piece)

    def fill(self, first: int, values: Mapping[str, Tensor]) -> None:
        """Puts consecutive rows and their state where they belong; narrower types to the nearest."""
        count = len(values[ROWS])
        hot = max(0, min(self.hot - first, count))
        for field in self.records.fields:
            self.cells[field.name][first : first + hot] = values[field.name][:hot].to(self.device)
            if hot < count:
                self.records.view(self.host.data[first + hot - self.hot : first + count - self.hot], field).copy_(values[field.name][hot:])
        for name, tensor in self.wide.items():
            tensor[first : first + count] = values[name].to(self.device)

    def pieces(self, field: Field) -> Iterator[Tensor]:
        """A field of all rows, as it is computed with, in pieces; of rows that are cached and not hot, what the host has."""
        for first, last in spans(self.hot, field.stop - field.start):
            yield full(self.cells[field.name][first:last])
        for first, last in spans(len(self.host.data), self.records.width):
            yield full(self.records.view(self.host.data[first:last], field))
