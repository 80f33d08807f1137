"""Where rows and their state live: the family of places. Every one learns the same, bit for bit."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from storage.tables import Offloaded, Resident, Table
from storage.tables.budget import affordable_rows
from storage.tables.host import Host
from storage.tables.movers import Kind
from storage.tables.places import Starting
from storage.tables.streaming import whole
from tasks.form import FORM

Type = Literal["float32", "float16", "bfloat16"]
_LOOKAHEAD = field(default=2, metadata={"description": "Batches whose rows are brought while a step runs", "ge": 0, "le": 64})
_ROW_TYPE: Type = field(default="float32", metadata={"description": "In which rows are stored; narrower ones are rounded stochastically at every step"})
_STATE_TYPE: Type = field(default="float32", metadata={"description": "Likewise the rule's state, where it has the shape of the rows"})


@dataclass(frozen=True, kw_only=True)
class ResidentTable:
    """Everything in the memory of the device that trains."""

    __pydantic_config__ = FORM
    name: Literal["resident"] = "resident"

    def room(self, tokens: int, dim: int) -> Tensor:
        """Where the rows are drawn that ``build`` is then given: float32 (tokens, dim), of any values."""
        return torch.empty(tokens, dim)

    def build(self, rows: Tensor, rule: Starting, device: torch.device) -> Table:
        """A table of these rows, float32 (tokens, dim) on the CPU, for steps on the device."""
        return _resident(rows, rule, device)


@dataclass(frozen=True, kw_only=True)
class MappedTable:
    """Rows in a file that is mapped, the frequent ones in memory: for tables larger than memory."""

    __pydantic_config__ = FORM
    name: Literal["mapped"] = "mapped"
    folder: str = field(default="", metadata={"description": "Where the scratch files go, on a local disk; empty: the system's temporary folder"})
    cached: float = field(default=0.1, metadata={"title": "Share in memory", "description": "Share of the rows that are kept in memory, the frequent ones", "gt": 0, "le": 1})
    lookahead: int = _LOOKAHEAD

    def room(self, tokens: int, dim: int) -> Tensor:
        """As in ResidentTable; in a scratch file too, which is gone when the table is built."""
        return Host(tokens, dim * torch.float32.itemsize, self._folder).data.view(torch.float32)

    def build(self, rows: Tensor, rule: Starting, device: torch.device) -> Table:
        """As in ResidentTable."""
        cache_rows = max(1, round(self.cached * len(rows)))
        return Offloaded(whole(rows), rule, device=device, cache_rows=cache_rows, lookahead=self.lookahead, folder=self._folder)

    @property
    def _folder(self) -> Path:
        return Path(self.folder or tempfile.gettempdir())


@dataclass(frozen=True, kw_only=True)
class OffloadedTable:
    """Rows and state in host memory, those in use and the frequent ones on the device; resident where all fits."""

    __pydantic_config__ = FORM
    name: Literal["offloaded"] = "offloaded"
    cache_bytes: int = field(default=0, metadata={"description": "Memory of the device for rows and state; 0: four fifths of what is free", "ge": 0})
    cache_rows: int = field(default=0, metadata={"description": "The same as a number of rows; 0: as many as cache_bytes hold", "ge": 0})
    lookahead: int = _LOOKAHEAD
    row_dtype: Type = _ROW_TYPE
    state_dtype: Type = _STATE_TYPE
    mover: Kind = field(default="auto", metadata={"description": "uva: the GPU gathers from host memory itself (needs CuPy); staged: the CPU does"})

    def room(self, tokens: int, dim: int) -> Tensor:
        """As in ResidentTable."""
        return torch.empty(tokens, dim)

    def build(self, rows: Tensor, rule: Starting, device: torch.device) -> Table:
        """As in ResidentTable.

        Raises:
            ValueError: The memory holds not one row, or the mover cannot be had.
        """
        types = {"row_dtype": getattr(torch, self.row_dtype), "state_dtype": getattr(torch, self.state_dtype)}
        cache_rows = self.cache_rows or affordable_rows(len(rows), rows[:1], rule, self.cache_bytes, device, **types)
        if cache_rows >= len(rows) and set(types.values()) == {torch.float32}:
            return _resident(rows, rule, device)
        return Offloaded(whole(rows), rule, device=device, cache_rows=cache_rows, lookahead=self.lookahead, mover=self.mover, **types)


Place = ResidentTable | MappedTable | OffloadedTable  # smaller sets of fields first: tests/contracts/test_form.py


def _resident(rows: Tensor, rule: Starting, device: torch.device) -> Resident:
    rows = rows.to(device)
    return Resident(rows, rule.initial_state(rows))
