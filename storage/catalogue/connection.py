"""Opens the DuckDB catalogue at the newest schema version, and temporary databases.

DuckDB locks out all other processes, including readers, while a process writes. Other programs therefore read
what ingest publishes (the Parquet files of the Guide, ``status.json``). Each migration of ``schema`` is
applied once, in a transaction, and recorded; released migrations of tables are never edited. Views are in
``views.sql``, which is applied again whenever the file has changed.

Migrations are applied to a copy, which then replaces the file. A process that is killed before the next
checkpoint would otherwise leave a write-ahead log with an ALTER TABLE of a table with a CHECK, and DuckDB
cannot replay such a log (duckdb/duckdb#18259).
"""

import errno
import glob
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import duckdb

from storage.atomic import replaced_database
from storage.catalogue.episode_columns import MIGRATION, fill_episode_columns
from storage.home.workspace import HomeError, HomeLocked

Connection = duckdb.DuckDBPyConnection  # type for other packages, which do not import DuckDB
FILE = "catalogue.duckdb"
SCHEMA = Path(__file__).resolve().parent / "schema"
VIEWS = SCHEMA / "views.sql"
# Memory limit of DuckDB, which spills to catalogue.duckdb.tmp. Ingest of any guide takes under 500 MiB.
MEMORY_BYTES = 160_000_000


class Migration(NamedTuple):
    """A change of the schema. Its version is its position among all migrations, from 1."""

    name: str
    sql: str


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """An open catalogue. Use ``with Catalogue.open(home)``."""

    home: Path
    connection: duckdb.DuckDBPyConnection
    schema_version: int

    @staticmethod
    @contextmanager
    def open(home: Path) -> "Iterator[Catalogue]":
        """Opens the catalogue for writing, creates it if missing, and applies pending migrations.

        Raises:
            HomeLocked: Another process has the file open; the message names the process.
            OSError: The disk is full (ENOSPC).
            HomeError: The file is from a newer GuideSpace or DuckDB, or DuckDB cannot replay its write-ahead
                log.
        """
        file, migrations = Path(home) / FILE, read_migrations()
        with full_disk_as_oserror(file):
            connection = _open_migrated(file, migrations)
            shutil.rmtree(f"{file}.tmp", ignore_errors=True)  # left by a killed process
            try:
                yield Catalogue(home=Path(home), connection=connection, schema_version=len(migrations))
            finally:
                connection.close()


def _open_migrated(file: Path, migrations: Sequence[Migration]) -> duckdb.DuckDBPyConnection:
    if file.exists():
        with ExitStack() as stack:
            connection = stack.enter_context(connect(file))
            is_current = schema_version(connection, migrations, file) == len(migrations)
            if is_current and _views_digest(connection) == _digest(VIEWS):
                stack.pop_all()
                return connection
    with replaced_database(file, connect, copy=True) as connection:
        pending = migrations[schema_version(connection, migrations, file) :]
        migrate(connection, migrations, file)
        if any(migration.name == MIGRATION for migration in pending):
            fill_episode_columns(connection)
        with transaction(connection):
            connection.execute(VIEWS.read_text(encoding="utf-8"))
            connection.execute(f"COMMENT ON VIEW schedule IS '{_digest(VIEWS)}'")
    return connect(file)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _views_digest(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Returns the digest of the views.sql that was applied last: the comment of the view ``schedule``."""
    query = "SELECT any_value(comment) FROM duckdb_views() WHERE view_name = 'schedule'"
    return connection.execute(query).fetchall()[0][0]


def copy_database(source: Path, target: Path) -> None:
    """Replaces ``target`` by a compact copy of ``source`` and its write-ahead log; the paths may be equal.

    DuckDB reuses free blocks of a file, but never truncates the file.

    Raises:
        OSError: The disk is full; ``target`` is unchanged.
    """
    with full_disk_as_oserror(target), replaced_database(target, connect) as connection:
        name = connection.execute("SELECT current_database()").fetchall()[0][0]
        connection.execute(f"ATTACH '{escape_quotes(source)}' AS source (READ_ONLY)")
        connection.execute(f'COPY FROM DATABASE source TO "{name}"')
        connection.execute("DETACH source")


def read_migrations(folder: Path = SCHEMA) -> list[Migration]:
    """Reads the migrations NNNN_name.sql of a folder."""
    files = sorted(folder.glob("[0-9]*.sql"))
    return [Migration(file.stem.partition("_")[2], file.read_text(encoding="utf-8")) for file in files]


def set_memory_limit(connection: duckdb.DuckDBPyConnection, size: int) -> None:
    """Sets the memory limit to ``size`` bytes, but at least to MEMORY_BYTES."""
    connection.execute(f"SET memory_limit = '{max(size, MEMORY_BYTES)}B'")


def connect(file: Path) -> duckdb.DuckDBPyConnection:
    """Opens a database file for writing with a memory limit; raises the errors of ``Catalogue.open``."""
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
        if "created with a newer version of DuckDB" in str(error):
            raise HomeError(
                f"{file} was written by a newer DuckDB than {duckdb.__version__}, which cannot read it. "
                "Name another --home and read the feeds again."
            ) from error
        if "lock" not in str(error).lower():
            raise
        holder = re.search(r"held in (.*?)\(PID (\d+)\)", str(error))
        process = f"process {holder[2]} ({holder[1].strip()})" if holder else "another process"
        raise HomeLocked(
            f"{file} is held by {process}. Wait for it to end, or name another --home."
        ) from error
    connection.execute("SET enable_progress_bar = false")  # the bar would mix with the output of commands
    connection.execute("SET threads = 1")  # two threads are not faster and take up to 100 MB more
    set_memory_limit(connection, MEMORY_BYTES)
    return connection


def migrate(connection: duckdb.DuckDBPyConnection, migrations: Sequence[Migration], file: Path) -> None:
    """Applies pending migrations; raises HomeError if the database has a newer version."""
    first = schema_version(connection, migrations, file)
    for version, (name, sql) in enumerate(migrations[first:], first + 1):
        with transaction(connection):
            connection.execute(sql)
            query = "INSERT INTO migrations VALUES (?, ?, make_timestamp(epoch_us(now())))"
            connection.execute(query, [version, name])


def schema_version(connection: duckdb.DuckDBPyConnection, migrations: Sequence[Migration], file: Path) -> int:
    """Returns the schema version; raises HomeError if it is newer than the last migration."""
    connection.execute("""
        CREATE TABLE IF NOT EXISTS migrations
        (version INTEGER PRIMARY KEY, name VARCHAR NOT NULL, applied_at TIMESTAMP NOT NULL)
    """)
    version = connection.execute("SELECT coalesce(max(version), 0) FROM migrations").fetchall()[0][0]
    if version > len(migrations):
        raise HomeError(
            f"{file} has schema version {version}; this GuideSpace supports versions to {len(migrations)}. "
            "Use the GuideSpace that made it, or name another --home."
        )
    return version


@contextmanager
def temporary_database(folder: Path, memory_bytes: int = 600_000_000) -> Iterator[Connection]:
    """Opens a database with a memory limit in a temporary folder below ``folder``."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="duckdb-") as spill, full_disk_as_oserror(folder):
        with duckdb.connect(f"{spill}/work.duckdb") as connection:
            # the bar would mix with the output of commands
            connection.execute("SET enable_progress_bar = false")
            connection.execute(f"SET memory_limit = '{memory_bytes}B'")
            connection.execute(f"SET temp_directory = '{escape_quotes(spill)}'")
            yield connection


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commits at the end of the block, or rolls back if the block raises."""
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        # a failed commit has already ended the transaction, so rollback fails; the commit's error is raised
        with suppress(duckdb.TransactionException):
            connection.rollback()
        raise


@contextmanager
def full_disk_as_oserror(file: Path) -> Iterator[None]:
    """Raises OSError in place of the various DuckDB errors about a full disk."""
    try:
        yield
    except duckdb.Error as error:
        cause: BaseException | None = error
        while cause is not None:  # DuckDB may name the full disk only in an earlier error of the chain
            for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                if os.strerror(code) in str(cause):
                    raise OSError(code, os.strerror(code), str(file)) from error
            cause = cause.__context__
        raise


def escape_glob(path: Path) -> str:
    """Escapes wildcards in a path for ``read_parquet``."""
    return glob.escape(str(path))


def escape_quotes(text: object) -> str:
    """Doubles single quotes, for the inside of an SQL string literal."""
    return str(text).replace("'", "''")
