"""A DuckDB database for one piece of work: it may spill to disk, and takes no more memory than it is given."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from storage.catalogue.full_disk import full_disk_told

MEMORY = "600MB"  # beyond it DuckDB spills


@contextmanager
def bounded(folder: Path, memory: str = MEMORY) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in a temporary folder below ``folder``; both are gone afterwards."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="duckdb-") as spill:
        config: dict[str, str | bool | int | float | list[str]] = {"memory_limit": memory, "temp_directory": spill}
        with full_disk_told(folder), duckdb.connect(str(Path(spill) / "work.duckdb"), config=config) as connection:
            connection.execute("SET enable_progress_bar = false")  # it would write into what commands print
            yield connection
