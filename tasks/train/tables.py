"""Settings of train.table: where the embedding rows and their optimizer state are stored.

The result of training is bitwise identical for all tables if rows and state are stored as float32.
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
BatchIds = Callable[[], Tensor | None]  # returns the row ids of a typical batch; None if they are unknown
_LOOKAHEAD = setting(2, "Number of batches whose rows are fetched in advance, while a step runs", ge=0, le=64)


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
    """Strategy: rows and optimizer state are in a mapped file, with a cache in memory for frequent tokens."""

    name: Literal["mapped"] = "mapped"
    folder: str = setting(
        "", "Folder of the scratch file, on a local disk; empty: the temporary folder of the system"
    )
    cached: float = setting(
        0.1, "Share of the rows, those of the most frequent tokens, that are kept in memory", gt=0, le=1
    )
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

        return Offloaded(
            rows,
            updater,
            device=device,
            cache_rows=max(1, round(self.cached * rows.shape[0])),
            lookahead=self.lookahead,
            folder=Path(self.folder or tempfile.gettempdir()),
            batch=batch(),
        )


@configurable
class OffloadedTable:
    """Strategy: rows and optimizer state are in host memory, and the training device has a cache.

    The cache contains the rows of frequent tokens and of the current batch. If all rows fit on the training
    device, ``build`` returns a resident table instead.
    """

    name: Literal["offloaded"] = "offloaded"
    cache_bytes: int = setting(
        0, "Bytes of device memory for rows and state; 0: four fifths of the free memory", ge=0
    )
    cache_rows: int = setting(0, "Number of rows in the cache; 0: as many as fit into cache_bytes", ge=0)
    lookahead: int = _LOOKAHEAD
    row_dtype: DtypeName = setting(
        "float32", "Number format of stored rows; 16-bit formats are rounded stochastically"
    )
    state_dtype: DtypeName = setting(
        "float32", "Number format of stored optimizer state, if it has the shape of the rows"
    )
    mover: Literal["auto", "uva", "staged"] = setting(
        "auto",
        "How rows move to a GPU: uva: the GPU reads host memory (needs CuPy); staged: the CPU gathers rows",
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
            ValueError: The cache is too small for a row, or ``mover`` is not available.
        """
        from storage.tables import Offloaded
        from storage.tables.row_storage import affordable_rows

        names = {"row_dtype": self.row_dtype, "state_dtype": self.state_dtype}
        dtypes = {parameter: getattr(torch, name) for parameter, name in names.items()}
        (count, dim), cache_rows = rows.shape, self.cache_rows
        if not cache_rows:
            cache_rows = affordable_rows(
                count, torch.zeros(1, dim), updater, self.cache_bytes, device, **dtypes
            )
        if cache_rows >= count and set(dtypes.values()) == {torch.float32}:
            return ResidentTable().build(rows, updater, device)
        return Offloaded(
            rows,
            updater,
            device=device,
            cache_rows=cache_rows,
            lookahead=self.lookahead,
            transfer=self.mover,
            batch=batch(),
            **dtypes,
        )


TableSettings = ResidentTable | MappedTable | OffloadedTable
