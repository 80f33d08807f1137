"""Opens the catalogue (the DuckDB database of all TV programmes), migrates it, and opens temporary databases.

While a process has a DuckDB file open for writing, no other process can open it, not even for reading. Other
programs therefore read the Parquet files and ``status.json``, which are published after each import of feeds.

Each migration in the folder ``schema`` is applied once, in a transaction, and recorded. Released migrations
are never edited. Views are in ``views.sql``, which is applied again whenever the file has changed.

Migrations are applied to a copy of the database, which then replaces the database. If a process were killed
while it migrates the database itself, it could leave a write-ahead log that DuckDB cannot replay: one with
an ALTER TABLE of a table that has a CHECK constraint (duckdb/duckdb#18259).
"""

import errno
import glob
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow.parquet as pq

from storage.atomic import replaced_database
from storage.catalogue.episode_columns import EPISODE_MIGRATION, fill_episode_columns
from storage.home.workspace import HomeError, HomeLocked

Connection = duckdb.DuckDBPyConnection  # for annotations in other packages, which must not import duckdb
CATALOGUE_FILE = "catalogue.duckdb"
SCHEMA_FOLDER = Path(__file__).resolve().parent / "schema"
VIEWS_FILE = SCHEMA_FOLDER / "views.sql"
# Default memory limit of DuckDB, which writes further data to catalogue.duckdb.tmp. With this limit, the
# import of any guide takes less than 500 MiB.
MEMORY_BYTES = 160_000_000


class Migration(NamedTuple):
    """An SQL script that changes the schema. Its version is its position among all migrations, from 1."""

    name: str
    sql: str


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The open database of all TV programmes of a home. Use ``with Catalogue.open(home) as catalogue``."""

    home: Path
    connection: duckdb.DuckDBPyConnection
    schema_version: int

    @staticmethod
    @contextmanager
    def open(home: Path) -> "Iterator[Catalogue]":
        """Opens the database of a home for writing; creates it if missing, and applies pending migrations.

        Raises:
            HomeLocked: Another process has the file open; the message names the process.
            OSError: The disk is full (ENOSPC).
            HomeError: A newer GuideSpace or DuckDB has written the file, or DuckDB cannot replay the
                write-ahead log of the file.
        """
        file, migrations = Path(home) / CATALOGUE_FILE, read_migrations()
        with full_disk_as_oserror(file):
            connection = _open_migrated(file, migrations)
            shutil.rmtree(f"{file}.tmp", ignore_errors=True)  # left by a killed process
            try:
                yield Catalogue(home=Path(home), connection=connection, schema_version=len(migrations))
            finally:
                connection.close()


def _open_migrated(file: Path, migrations: Sequence[Migration]) -> duckdb.DuckDBPyConnection:
    """Creates or migrates a database and applies its views if necessary, and opens it for writing."""
    if file.exists():
        with ExitStack() as stack:
            connection = stack.enter_context(connect(file))
            is_current = schema_version(connection, migrations, file) == len(migrations)
            if is_current and _views_digest(connection) == _digest(VIEWS_FILE):
                stack.pop_all()  # leaves the connection open
                return connection
    with replaced_database(file, connect, copy=True) as connection:
        pending_migrations = migrations[schema_version(connection, migrations, file) :]
        migrate(connection, migrations, file)
        if any(migration.name == EPISODE_MIGRATION for migration in pending_migrations):
            fill_episode_columns(connection)
        with transaction(connection):
            connection.execute(VIEWS_FILE.read_text(encoding="utf-8"))
            connection.execute(f"COMMENT ON VIEW schedule IS '{_digest(VIEWS_FILE)}'")
    return connect(file)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _views_digest(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Returns the digest of views.sql when it was applied, which is the comment of the view ``schedule``."""
    query = "SELECT any_value(comment) FROM duckdb_views() WHERE view_name = 'schedule'"
    return connection.execute(query).fetchall()[0][0]


def copy_database(source: Path, target: Path) -> None:
    """Writes a copy of the database ``source`` without free blocks to ``target``, which may be the same path.

    DuckDB reuses free blocks of a file but never shrinks the file itself.

    Raises:
        OSError: The disk is full; ``target`` is unchanged.
    """
    with full_disk_as_oserror(target), replaced_database(target, connect) as connection:
        name = connection.execute("SELECT current_database()").fetchall()[0][0]
        connection.execute(f"ATTACH '{escape_quotes(source)}' AS source (READ_ONLY)")
        connection.execute(f'COPY FROM DATABASE source TO "{name}"')
        connection.execute("DETACH source")


def read_migrations(folder: Path = SCHEMA_FOLDER) -> list[Migration]:
    """Reads the files NNNN_name.sql in a folder, in the order of their numbers."""
    files = sorted(folder.glob("[0-9]*.sql"))
    return [Migration(file.stem.partition("_")[2], file.read_text(encoding="utf-8")) for file in files]


def set_memory_limit(connection: duckdb.DuckDBPyConnection, memory_bytes: int) -> None:
    """Sets DuckDB's memory limit to ``memory_bytes``, but at least to MEMORY_BYTES."""
    connection.execute(f"SET memory_limit = '{max(memory_bytes, MEMORY_BYTES)}B'")


def connect(file: Path) -> duckdb.DuckDBPyConnection:
    """Opens a DuckDB file for writing with the memory limit MEMORY_BYTES.

    Raises:
        HomeLocked: Another process has the file open; the message names the process.
        HomeError: A newer DuckDB has written the file, or DuckDB cannot replay the file's write-ahead log.
    """
    try:
        connection = duckdb.connect(str(file))
    except duckdb.InternalException as error:
        if "replaying WAL" not in str(error):
            raise
        raise HomeError(
            f"DuckDB {duckdb.__version__} cannot read {file}.wal, the log of a killed process "
            "(duckdb/duckdb#18259). Move it away and run the same command again, which reads the feeds again."
        ) from error
    except duckdb.IOException as error:
        if "created with a newer version of DuckDB" in str(error):
            raise HomeError(
                f"{file} was written by a newer DuckDB; the installed version {duckdb.__version__} cannot "
                "read it. Upgrade DuckDB, or name another --home and read the feeds again."
            ) from error
        if "lock" not in str(error).lower():
            raise
        lock_match = re.search(r"held in (.*?)\(PID (\d+)\)", str(error))
        process = f"process {lock_match[2]} ({lock_match[1].strip()})" if lock_match else "another process"
        raise HomeLocked(
            f"{file} is held by {process}. Wait for it to end, or name another --home."
        ) from error
    connection.execute("SET enable_progress_bar = false")  # the bar would mix with the output of commands
    connection.execute("SET threads = 1")  # two threads are not faster and take up to 100 MB more
    set_memory_limit(connection, MEMORY_BYTES)
    return connection


def migrate(connection: duckdb.DuckDBPyConnection, migrations: Sequence[Migration], file: Path) -> None:
    """Applies the missing migrations to ``file``. Raises HomeError if its schema version is too new."""
    applied_count = schema_version(connection, migrations, file)
    for version, (name, sql) in enumerate(migrations[applied_count:], applied_count + 1):
        with transaction(connection):
            connection.execute(sql)
            query = "INSERT INTO migrations VALUES (?, ?, make_timestamp(epoch_us(now())))"
            connection.execute(query, [version, name])


def schema_version(connection: duckdb.DuckDBPyConnection, migrations: Sequence[Migration], file: Path) -> int:
    """Returns the number of migrations applied to ``file``; raises HomeError if it exceeds ``migrations``."""
    connection.execute("""
        CREATE TABLE IF NOT EXISTS migrations
        (version INTEGER PRIMARY KEY, name VARCHAR NOT NULL, applied_at TIMESTAMP NOT NULL)
    """)
    version = connection.execute("SELECT coalesce(max(version), 0) FROM migrations").fetchall()[0][0]
    if version > len(migrations):
        raise HomeError(
            f"{file} has schema version {version}; this GuideSpace supports versions to {len(migrations)}. "
            "Use the version of GuideSpace that wrote the file, or name another --home."
        )
    return version


@contextmanager
def temporary_database(folder: Path, memory_bytes: int = 600_000_000) -> Iterator[Connection]:
    """Yields a connection to a new database in a subfolder of ``folder``, which is removed at the end.

    Args:
        folder: Folder on the disk to which DuckDB writes data that exceed the memory limit.
        memory_bytes: Memory limit of DuckDB.
    """
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix="duckdb-") as spill_folder,
        full_disk_as_oserror(folder),
    ):
        with duckdb.connect(f"{spill_folder}/work.duckdb") as connection:
            connection.execute("SET enable_progress_bar = false")  # it would mix with the output of commands
            connection.execute(f"SET memory_limit = '{memory_bytes}B'")
            connection.execute(f"SET temp_directory = '{escape_quotes(spill_folder)}'")
            yield connection


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Runs the block in a transaction: commits at the end of the block, or rolls back if the block raises."""
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
    """Raises an OSError with the path ``file`` in place of an error of DuckDB about a full disk."""
    try:
        yield
    except duckdb.Error as error:
        cause: BaseException | None = error
        while cause is not None:  # sometimes only an earlier error of the chain mentions the full disk
            for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                if os.strerror(code) in str(cause):
                    raise OSError(code, os.strerror(code), str(file)) from error
            cause = cause.__context__
        raise


def escape_glob(path: Path) -> str:
    """Escapes wildcards in a path, because ``read_parquet`` expands them."""
    return glob.escape(str(path))


def escape_quotes(text: object) -> str:
    """Doubles the single quotes of a text, so that it can be put between single quotes in SQL."""
    return str(text).replace("'", "''")


def present_columns(file: Path, types: Mapping[str, str]) -> str:
    """Returns a list of columns in SQL for a SELECT from a Parquet file; columns that it lacks become NULL.

    Args:
        file: Parquet file, which an older version may have written without some of the columns.
        types: Maps the name of each column to its SQL type.
    """
    file_columns = pq.read_schema(file).names
    return ", ".join(
        name if name in file_columns else f"NULL::{sql_type} AS {name}" for name, sql_type in types.items()
    )
