"""Opening DuckDB: the catalogue (one file in the home, always at the newest schema) and temporary databases.

Only ingest opens the catalogue: DuckDB locks all other processes out, readers too, while one writes. Others
read what ingest publishes (the Guide's Parquet files, ``status.json``). A migration of ``schema`` is applied
once, in its own transaction, and recorded; a released one is never edited.

A copy is migrated, which then takes the file's place: DuckDB cannot open a database whose write-ahead log has
an ALTER TABLE of a table with a CHECK (duckdb/duckdb#18259), as a process leaves it that is killed before the
next checkpoint.
"""

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import duckdb

from storage.atomic import replaced_database
from storage.catalogue.episode_columns import MIGRATION, fill_episode_columns
from storage.home.workspace import HomeError, HomeLocked

FILE = "catalogue.duckdb"
SCHEMA = Path(__file__).resolve().parent / "schema"
# Bytes of DuckDB's own; more spills to catalogue.duckdb.tmp. Any guide is read in less than 500 MiB.
MEMORY = 160_000_000


class Migration(NamedTuple):
    """One step of the schema: its number (from 1, without gaps), its name and its statements."""

    version: int
    name: str
    sql: str


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """An open catalogue; use ``with Catalogue.open(home)``."""

    home: Path
    connection: duckdb.DuckDBPyConnection
    schema_version: int

    @staticmethod
    @contextmanager
    def open(home: Path, migrations: Sequence[Migration] | None = None) -> "Iterator[Catalogue]":
        """Opens for writing, creates the file if missing, and applies the migrations that it lacks.

        Raises:
            HomeLocked: Another process has it open; the message names the process.
            OSError: The disk is full (ENOSPC).
            HomeError: A newer GuideSpace made it, a newer DuckDB wrote the file, or DuckDB cannot read its
                write-ahead log.
        """
        steps = known_migrations() if migrations is None else migrations
        file = Path(home) / FILE
        with full_disk_as_oserror(file):
            connection = _open_migrated(file, steps)
            shutil.rmtree(f"{file}.tmp", ignore_errors=True)  # left by a killed process
            try:
                yield Catalogue(home=Path(home), connection=connection, schema_version=len(steps))
            finally:
                connection.close()


def _open_migrated(file: Path, migrations: Sequence[Migration]) -> duckdb.DuckDBPyConnection:
    if file.exists():
        with ExitStack() as stack:
            connection = stack.enter_context(connect(file))
            if schema_version(connection, migrations, file) == len(migrations):
                stack.pop_all()
                return connection
    with replaced_database(file, connect, copy=True) as connection:
        lacking = migrations[schema_version(connection, migrations, file) :]
        migrate(connection, migrations, file)
        if any(migration.name == MIGRATION for migration in lacking):
            fill_episode_columns(connection)
    return connect(file)


def copy_database(source: Path, target: Path) -> None:
    """Replaces ``target`` by a compact copy of all that ``source`` holds, its write-ahead log included; both
    may be the same file. DuckDB reuses free blocks of a file, but does not return them.

    Raises:
        OSError: The disk is full; ``target`` is as it was.
    """
    with full_disk_as_oserror(target), replaced_database(target, connect) as connection:
        name = connection.execute("SELECT current_database()").fetchall()[0][0]
        connection.execute(f"ATTACH '{quoted(source)}' AS source (READ_ONLY)")
        connection.execute(f'COPY FROM DATABASE source TO "{name}"')
        connection.execute("DETACH source")


def known_migrations(folder: Path = SCHEMA) -> list[Migration]:
    """The migrations NNNN_name.sql of a folder, in order; ValueError where a number is missing or doubled."""
    found: list[Migration] = []
    for version, file in enumerate(sorted(folder.glob("*.sql")), 1):
        match = re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name)
        if match is None or int(match[1]) != version:
            raise ValueError(f"{file.name}: expected {version:04d}_name.sql as the next migration")
        found.append(Migration(version, match[2], file.read_text(encoding="utf-8")))
    return found


def allow_memory(connection: duckdb.DuckDBPyConnection, size: int) -> None:
    """Lets DuckDB hold ``size`` bytes, at least its usual limit."""
    connection.execute(f"SET memory_limit = '{max(size, MEMORY)}B'")


def connect(file: Path) -> duckdb.DuckDBPyConnection:
    """Opens a database file for writing, with bounded memory; raises as ``Catalogue.open`` does."""
    try:
        connection = duckdb.connect(str(file))
    except duckdb.InternalException as error:
        if "replaying WAL" not in str(error):
            raise
        raise HomeError(
            f"DuckDB {duckdb.__version__} cannot read {file}.wal, which a killed process left "
            "(duckdb/duckdb#18259). Move it away and run the same command again: the feeds are read again."
        ) from error
    except duckdb.IOException as error:
        if "created with a newer version of DuckDB" in str(error):  # DuckDB's words
            raise HomeError(
                f"{file} was written by a newer DuckDB than {duckdb.__version__}, which cannot read it. "
                "docs/catalogue.md has the command that rewrites it, under 'A catalogue of DuckDB 2'; "
                "or name another --home and read the feeds again."
            ) from error
        if "lock" not in str(error).lower():
            raise
        holder = re.search(r"held in (.*?)\(PID (\d+)\)", str(error))
        who = f"process {holder[2]} ({holder[1].strip()})" if holder else "another process"
        raise HomeLocked(f"{file} is held by {who}. Wait for it to end, or name another --home.") from error
    connection.execute("SET enable_progress_bar = false")  # it would write into what commands print
    connection.execute("SET threads = 1")  # two took as long, and up to 100 MB more beside a parser
    allow_memory(connection, MEMORY)
    return connection


def migrate(connection: duckdb.DuckDBPyConnection, migrations: Sequence[Migration], file: Path) -> None:
    """Applies the migrations that a database lacks; a HomeError where it has more than these."""
    for version, name, sql in migrations[schema_version(connection, migrations, file) :]:
        with transaction(connection):
            connection.execute(sql)
            applied = "INSERT INTO migrations VALUES (?, ?, make_timestamp(epoch_us(now())))"
            connection.execute(applied, [version, name])


def schema_version(connection: duckdb.DuckDBPyConnection, migrations: Sequence[Migration], file: Path) -> int:
    """How many migrations a database has; a HomeError where they are more than these."""
    connection.execute("""
        CREATE TABLE IF NOT EXISTS migrations
        (version INTEGER PRIMARY KEY, name VARCHAR NOT NULL, applied_at TIMESTAMP NOT NULL)
    """)
    found = connection.execute("SELECT coalesce(max(version), 0) FROM migrations").fetchall()[0][0]
    if found > len(migrations):
        raise HomeError(
            f"{file} has schema version {found}, this GuideSpace knows versions up to {len(migrations)}. "
            "Use the GuideSpace that made it, or name another --home."
        )
    return found


_memory: ContextVar[int] = ContextVar("memory", default=600_000_000)


@contextmanager
def bounded_memory(size: int) -> Iterator[None]:
    """Temporary databases that are opened in the block hold ``size`` bytes, in place of 600 MB."""
    token = _memory.set(size)
    try:
        yield
    finally:
        _memory.reset(token)


@contextmanager
def temporary_database(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database of bounded memory in a temporary folder below ``folder``; both are removed afterwards."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="duckdb-") as spill, full_disk_as_oserror(folder):
        with duckdb.connect(f"{spill}/work.duckdb") as connection:
            connection.execute("SET enable_progress_bar = false")  # it would write into what commands print
            connection.execute(f"SET memory_limit = '{_memory.get()}B'")
            connection.execute(f"SET temp_directory = '{quoted(spill)}'")
            yield connection


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commits at the end of the block, or rolls back when it raises."""
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        with suppress(duckdb.TransactionException):  # a failed commit has ended it: that error is raised
            connection.rollback()
        raise


@contextmanager
def full_disk_as_oserror(file: Path) -> Iterator[None]:
    """Raises an OSError for DuckDB's errors about a full disk, of which it has several kinds."""
    try:
        yield
    except duckdb.Error as error:
        cause: BaseException | None = error
        while cause is not None:  # the last one raised may only say that an earlier one was fatal
            for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                if os.strerror(code) in str(cause):
                    raise OSError(code, os.strerror(code), str(file)) from error
            cause = cause.__context__
        raise


def parquet(path: Path) -> str:
    """A path for ``read_parquet`` with the wildcards ``*``, ``?`` and ``[`` escaped."""
    return re.sub(r"[*?\[]", r"[\g<0>]", str(path))


def quoted(text: object) -> str:
    """The inside of an SQL string literal."""
    return str(text).replace("'", "''")
