"""Likes at rest: ``likes.duckdb`` in the home, with numbered migrations of its own (schema_likes).

It is not the catalogue's file, for two reasons. DuckDB locks the catalogue while a guide is ingested, and a
viewer does not wait for that. And what DuckDB deletes stays in the free blocks of its file, after CHECKPOINT
and VACUUM too: ``forget_viewer`` writes the file anew without the viewer's rows, which would take the
catalogue's gigabytes long.

A viewer is SHA-256 of the home's salt (``likes.salt``, 32 random bytes, readable by its owner alone) and the
name, cut to 128 bits. Names are compared in Unicode's form NFC, without spaces around them. Whoever has the
salt can test whether a name is among the hashes; without it nobody can.
"""

import hashlib
import os
import secrets
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
from filelock import FileLock, Timeout

from storage.atomic import create_file, replaced_database
from storage.catalogue.connection import (
    connect,
    full_disk_as_oserror,
    known_migrations,
    migrate,
    quoted,
    transaction,
)
from storage.home.workspace import HomeLocked

FILE = "likes.duckdb"
SALT = "likes.salt"
MIGRATIONS = Path(__file__).resolve().parent / "schema_likes"
WAIT_SECONDS = 10.0  # for another command that writes likes
STATED = "stated"  # the source of what a viewer said, which counts before what was watched

# Rows of a source; see schema_likes for what they mean. Viewers are named here and hashed on the way in.
LIKES = pa.schema(
    dict.fromkeys(("viewer", "show_key", "episode", "sub_title", "source", "title"), pa.string())
    | {"time": pa.timestamp("us"), "value": pa.float32(), "seen": pa.bool_()}
)
# No query of a list has parameters: DuckDB imports pandas for them (storage/catalogue/evening.py).
# One row a viewer and title: the last thing that was stated, else the mean over what was watched.
_OPINIONS = """
    SELECT viewer, show_key, arg_max(title, time) AS title, max(time) AS time,
           coalesce(arg_max(value, time) FILTER (source = '{stated}'), avg(value))::FLOAT AS value
    FROM likes
    WHERE {whose}
    GROUP BY viewer, show_key
    HAVING coalesce(arg_max(value, time) FILTER (source = '{stated}'), avg(value)) != 0
    ORDER BY viewer, show_key
"""
_SEEN = """
    SELECT DISTINCT viewer, show_key, episode, sub_title
    FROM likes
    WHERE seen AND {whose}
    ORDER BY ALL
"""
# The later row counts; what was seen stays seen.
_ADD = """
    INSERT INTO likes
    SELECT viewer, show_key, episode, sub_title, source,
           arg_max(title, time), max(time), arg_max(value, time), bool_or(seen)
    FROM hashed
    GROUP BY viewer, show_key, episode, sub_title, source
    ON CONFLICT DO UPDATE SET
        title = CASE WHEN excluded.time >= time THEN excluded.title ELSE title END,
        value = CASE WHEN excluded.time >= time THEN excluded.value ELSE value END,
        time = greatest(time, excluded.time),
        seen = seen OR excluded.seen
"""


def hash_viewer(home: Path, name: str) -> str:
    """The hash of a viewer's name; makes the home's salt at its first use."""
    return _hash(home_salt(Path(home)), name)


def add_likes(home: Path, rows: pa.Table) -> int:
    """Stores rows of ``LIKES``; rows that are there already change nothing. Returns how many are new.

    Raises:
        HomeLocked: Another process writes likes for longer than ``WAIT_SECONDS``.
    """
    salt, names = home_salt(Path(home)), rows["viewer"].to_pylist()
    hashes = {name: _hash(salt, name) for name in set(names)}
    column = pa.array([hashes[name] for name in names], pa.string())
    hashed = rows.select(LIKES.names).cast(LIKES).set_column(0, "viewer", column)
    with _open(Path(home)) as connection, transaction(connection):
        before = _count(connection)
        connection.register("hashed", hashed)
        connection.execute(_ADD)
        connection.unregister("hashed")
        return _count(connection) - before


def read_likes(home: Path, viewer: str | None = None) -> tuple[pa.Table, pa.Table]:
    """Opinions (viewer, show_key, title, time, value other than 0), one a viewer and title, and what was seen
    (viewer, show_key, episode, sub_title), of one hash or of all; both empty where nothing was ever liked.
    """
    with _open(Path(home)) as connection:
        return _read(connection, viewer)


@contextmanager
def unchanged_likes(home: Path, opinions: pa.Table) -> Iterator[bool]:
    """Keeps others from writing likes; gives whether ``read_likes`` would still return these opinions."""
    viewers = opinions["viewer"].unique().to_pylist()
    with _open(home) as connection:
        now, _ = _read(connection, viewers[0] if len(viewers) == 1 else None)
        yield now.equals(opinions)


def _read(connection: duckdb.DuckDBPyConnection, viewer: str | None) -> tuple[pa.Table, pa.Table]:
    whose = "true" if viewer is None else f"viewer = '{quoted(viewer)}'"
    queries = _OPINIONS.format(whose=whose, stated=STATED), _SEEN.format(whose=whose)
    opinions, seen = (connection.sql(query).to_arrow_table() for query in queries)
    return opinions, seen


def forget_viewer(home: Path, name: str) -> int:
    """Writes the file anew without the viewer's rows; returns how many there were."""
    home = Path(home)
    file, viewer = home / FILE, hash_viewer(home, name)
    with locked_likes(home):
        if not file.exists():
            return 0
        with full_disk_as_oserror(file), replaced_database(file, _connect) as connection:
            connection.execute(f"ATTACH '{quoted(file)}' AS old (READ_ONLY)")
            query = "SELECT count(*) FROM old.likes WHERE viewer = ?"
            (count,) = connection.execute(query, [viewer]).fetchall()[0]
            connection.execute("INSERT INTO likes SELECT * FROM old.likes WHERE viewer != ?", [viewer])
            connection.execute("DETACH old")
        return count


def _hash(salt: str, name: str) -> str:
    return hashlib.sha256((salt + unicodedata.normalize("NFC", name).strip()).encode()).hexdigest()[:32]


def home_salt(home: Path) -> str:
    """The salt of a home's hashes, made at its first use; it belongs in no export."""
    file = home / SALT
    if not file.exists():  # of two processes the first one's stays
        new = home / f"{SALT}.{os.getpid()}.tmp"
        with open(
            os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as handle:
            handle.write(secrets.token_hex(32))
        create_file(new, file)
    return file.read_text(encoding="utf-8")


def _count(connection: duckdb.DuckDBPyConnection) -> int:
    return connection.execute("SELECT count(*) FROM likes").fetchall()[0][0]


@contextmanager
def _open(home: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with locked_likes(home), closing(_connect(home / FILE)) as connection:
        yield connection


def _connect(file: Path) -> duckdb.DuckDBPyConnection:
    connection = connect(file)
    try:
        migrate(connection, known_migrations(MIGRATIONS), file)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def locked_likes(home: Path) -> Iterator[None]:
    """Keeps other processes from reading or writing likes, as ``forget_viewer`` replaces the file.

    Raises:
        HomeLocked: Another process holds the lock for longer than ``WAIT_SECONDS``.
    """
    try:
        with FileLock(home / "likes.lock", WAIT_SECONDS, mode=0o600):
            yield
    except Timeout as error:
        raise HomeLocked(f"{home / FILE} is being written by another process; try again") from error
