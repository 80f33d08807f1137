"""Opening the catalogue: one DuckDB file in the home, one writing process, always at the newest schema.

Only ingest opens it. Everybody else reads what it publishes (the Guide's Parquet files, ``status.json``): DuckDB shuts
all other processes out, readers too, while one writes.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from storage.catalogue.full_disk import full_disk_told
from storage.catalogue.lost import CARRY_OVER, NEWER_FILE
from storage.catalogue.migrations import Migration, known_migrations, migrate
from storage.workspace import HomeError, HomeLocked

FILE = "catalogue.duckdb"
MEMORY = 160_000_000  # bytes of DuckDB's own; more goes to catalogue.duckdb.tmp. A guide is read in less than 500 MB in all, however large


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """An open catalogue; lives in one ``with Catalogue.open(home)``.

    Attributes:
        home: The home it lies in.
        connection: For the files of queries beside this one.
        schema_version: Number of the newest migration.
    """

    home: Path
    connection: duckdb.DuckDBPyConnection
    schema_version: int

    @staticmethod
    @contextmanager
    def open(home: Path, migrations: Sequence[Migration] | None = None) -> Iterator[Catalogue]:
        """Opens for writing, makes the file if missing, and applies what the schema lacks.

        Args:
            home: An existing folder.
            migrations: Other migrations than this version's (tests).

        Raises:
            HomeLocked: Another process has it open; the message names the process.
            OSError: The disk is full (ENOSPC).
            HomeError: A newer GuideSpace made it, or a newer DuckDB wrote the file.
        """
        steps = known_migrations() if migrations is None else list(migrations)
        file = Path(home) / FILE
        connection = _connect(file)
        shutil.rmtree(f"{file}.tmp", ignore_errors=True)  # what a killed process had put aside
        with full_disk_told(file):
            try:
                migrate(connection, steps, str(file))
                yield Catalogue(home=Path(home), connection=connection, schema_version=len(steps))
            finally:
                connection.close()


def allow_memory(connection: duckdb.DuckDBPyConnection, size: int) -> None:
    """Lets DuckDB hold ``size`` bytes, or the least that it always may."""
    connection.execute(f"SET memory_limit = '{max(size, MEMORY)}B'")


def _connect(file: Path) -> duckdb.DuckDBPyConnection:
    """Opens the file; DuckDB's own messages about a lock and about a newer file become ones that say what to do."""
    try:
        connection = duckdb.connect(str(file))
        connection.execute("SET enable_progress_bar = false")  # it would write into what commands print
        allow_memory(connection, MEMORY)
        return connection
    except duckdb.IOException as error:
        if NEWER_FILE in str(error):
            raise HomeError(f"{file} was written by a newer DuckDB than {duckdb.__version__}, which cannot read it. {CARRY_OVER}.") from error
        if "lock" not in str(error).lower():
            raise
        holder = re.search(r"held in (.*?)\(PID (\d+)\)", str(error))
        who = f"process {holder[2]} ({holder[1].strip()})" if holder else "another process"
        raise HomeLocked(f"{file} is held by {who}. Wait for it to end, or name another --home.") from error
