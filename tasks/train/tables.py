"""Settings of train.table, which choose where embedding rows and optimizer state are stored.

Training results are bitwise identical for all tables if rows and state are stored as float32.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from storage.lazy import Tensor, torch
from tasks.form import configurable, setting

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from storage.tables import Section, StateInitializer, Table

DtypeName = Literal["float32", "float16", "bfloat16"]
BatchIds = Callable[[], Tensor | None]  # returns the row ids of a typical batch, or None if unknown
_LOOKAHEAD = setting(2, "Batches whose rows are fetched while a step runs", ge=0, le=64)


def _no_batch() -> None: ...


@configurable
class ResidentTable:
    """Strategy: rows and optimizer state are in the memory of the training device."""

    name: Literal["resident"] = "resident"

    def build(
        self,
        rows: "Section",
        updater: "StateInitializer",
        device: "torch.device",
        batch: BatchIds = _no_batch,
    ) -> "Table":
        """Builds a table from rows, float32 (tokens, dim), for steps on ``device``."""
        from storage.tables import Resident

        tensor = rows.tensor(device)
        return Resident(tensor, updater.initial_state(tensor))


@configurable
class MappedTable:
    """Strategy: rows and optimizer state are in a memory-mapped file, those of frequent tokens in memory."""

    name: Literal["mapped"] = "mapped"
    folder: str = setting("", "Folder of scratch files, on a local disk; empty: the temporary folder")
    cached: float = setting(0.1, "Share of the rows that is kept in memory: the most frequent", gt=0, le=1)
    lookahead: int = _LOOKAHEAD

    def build(
        self,
        rows: "Section",
        updater: "StateInitializer",
        device: "torch.device",
        batch: BatchIds = _no_batch,
    ) -> "Table":
        """Builds a table in a scratch file from rows, float32 (tokens, dim), for steps on ``device``."""
        from storage.tables import Offloaded

        cached, folder = round(self.cached * rows.shape[0]), Path(self.folder or tempfile.gettempdir())
        options = {"lookahead": self.lookahead, "folder": folder, "batch": batch()}
        return Offloaded(rows, updater, device=device, cache_rows=max(1, cached), **options)


@configurable
class OffloadedTable:
    """Strategy: rows and optimizer state are in host memory, and the device has a cache.

    The cache contains frequent rows and the rows of the current batch. If all rows fit on the device,
    ``build`` returns a resident table instead.
    """

    name: Literal["offloaded"] = "offloaded"
    cache_bytes: int = setting(0, "Device memory for rows and state; 0: four fifths of the free memory", ge=0)
    cache_rows: int = setting(0, "Rows cached on the device; 0: as many as fit into cache_bytes", ge=0)
    lookahead: int = _LOOKAHEAD
    row_dtype: DtypeName = setting("float32", "Stored type of rows; rounding to narrower types is stochastic")
    state_dtype: DtypeName = setting("float32", "Stored type of state that has the shape of the rows")
    mover: Literal["auto", "uva", "staged"] = setting(
        "auto", "uva: the GPU gathers rows from host memory (needs CuPy); staged: the CPU gathers them"
    )

    def build(
        self,
        rows: "Section",
        updater: "StateInitializer",
        device: "torch.device",
        batch: BatchIds = _no_batch,
    ) -> "Table":
        """Builds a table in host memory from rows, float32 (tokens, dim), for steps on ``device``.

        Raises:
            ValueError: No row fits in the cache, or ``mover`` is not available.
        """
        from storage.tables import Offloaded
        from storage.tables.row_storage import affordable_rows

        types = {"row_dtype": getattr(torch, self.row_dtype), "state_dtype": getattr(torch, self.state_dtype)}
        available = rows.shape[0], torch.zeros(1, rows.shape[1]), updater, self.cache_bytes, device
        cached_rows = self.cache_rows or affordable_rows(*available, **types)
        if cached_rows >= rows.shape[0] and set(types.values()) == {torch.float32}:
            return ResidentTable().build(rows, updater, device)
        options = {"cache_rows": cached_rows, "lookahead": self.lookahead, "transfer": self.mover, **types}
        options["batch"] = batch()
        return Offloaded(rows, updater, device=device, **options)


TableSettings = ResidentTable | MappedTable | OffloadedTable
