"""Where rows and their state are stored: the settings of train.table. All learn the same, bit for bit."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from storage.tables import Host, Offloaded, Resident, StateInitializer, Table, TransferKind, whole
from storage.tables.row_storage import affordable_rows
from tasks.form import configurable, setting

Type = Literal["float32", "float16", "bfloat16"]
IdsOfBatch = Callable[[], Tensor | None]  # of a typical batch, for the tables that ask
_LOOKAHEAD = setting(2, "Batches whose rows are fetched while a step runs", ge=0, le=64)


def _unknown() -> None: ...


@configurable
class ResidentTable:
    """Everything in the memory of the device that trains."""

    name: Literal["resident"] = "resident"

    def room(self, tokens: int, dim: int) -> Tensor:
        """Where the rows are drawn that ``build`` is given: float32 (tokens, dim), of any values."""
        return torch.empty(tokens, dim)

    def build(
        self, rows: Tensor, updater: StateInitializer, device: torch.device, batch: IdsOfBatch = _unknown
    ) -> Table:
        """A table of these rows, float32 (tokens, dim) on the CPU, for steps on the device."""
        rows = rows.to(device)
        return Resident(rows, updater.initial_state(rows))


@configurable
class MappedTable:
    """Rows in a memory-mapped file, the frequent ones in memory: for tables larger than memory."""

    name: Literal["mapped"] = "mapped"
    folder: str = setting("", "For scratch files, on a local disk; empty: the system's temporary folder")
    cached: float = setting(0.1, "Share of the rows kept in memory, the frequent ones", gt=0, le=1)
    lookahead: int = _LOOKAHEAD

    def room(self, tokens: int, dim: int) -> Tensor:
        """As in ResidentTable, in a scratch file that is gone when the table is built."""
        folder = Path(self.folder or tempfile.gettempdir())
        return Host(tokens, dim * torch.float32.itemsize, folder).data.view(torch.float32)

    def build(
        self, rows: Tensor, updater: StateInitializer, device: torch.device, batch: IdsOfBatch = _unknown
    ) -> Table:
        """As in ResidentTable."""
        cached, folder = max(1, round(self.cached * len(rows))), Path(self.folder or tempfile.gettempdir())
        options = {"lookahead": self.lookahead, "folder": folder, "batch": batch()}
        return Offloaded(whole(rows), updater, device=device, cache_rows=cached, **options)


@configurable
class OffloadedTable:
    """Rows and state in host memory, those used now and often on the device; resident if all fits."""

    name: Literal["offloaded"] = "offloaded"
    cache_bytes: int = setting(0, "Device memory for rows and state; 0: four fifths of what is free", ge=0)
    cache_rows: int = setting(0, "The same as a number of rows; 0: as many as cache_bytes hold", ge=0)
    lookahead: int = _LOOKAHEAD
    row_dtype: Type = setting("float32", "Stored type of rows; narrower ones are rounded stochastically")
    state_dtype: Type = setting("float32", "Likewise the state, where it has the shape of the rows")
    mover: TransferKind = setting(
        "auto", "uva: the GPU gathers from host memory (needs CuPy); staged: the CPU does"
    )

    def room(self, tokens: int, dim: int) -> Tensor:
        """As in ResidentTable."""
        return torch.empty(tokens, dim)

    def build(
        self, rows: Tensor, updater: StateInitializer, device: torch.device, batch: IdsOfBatch = _unknown
    ) -> Table:
        """As in ResidentTable; ValueError if not one row fits, or the transfer is not available."""
        types = {"row_dtype": getattr(torch, self.row_dtype), "state_dtype": getattr(torch, self.state_dtype)}
        fitting = self.cache_rows
        fitting = fitting or affordable_rows(len(rows), rows[:1], updater, self.cache_bytes, device, **types)
        if fitting >= len(rows) and set(types.values()) == {torch.float32}:
            return ResidentTable().build(rows, updater, device)
        options = {"cache_rows": fitting, "lookahead": self.lookahead, "transfer": self.mover, **types}
        options["batch"] = batch()
        return Offloaded(whole(rows), updater, device=device, **options)


TableSettings = ResidentTable | MappedTable | OffloadedTable
