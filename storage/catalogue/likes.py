"""Stores likes in ``likes.duckdb`` in the home, with separate numbered migrations (schema_likes).

Likes are not in the catalogue for two reasons. DuckDB locks the catalogue while a guide is ingested, which
takes too long for a viewer. Deleted rows remain in the free blocks of a DuckDB file, even after VACUUM,
so ``forget_viewer`` has to rewrite the file; the catalogue, with gigabytes, would be too large.

A viewer is stored as the SHA-256 of the home's salt (``likes.salt``, 32 random bytes, readable by the owner
only) and the viewer's name, truncated to 128 bits. Names are stripped and compared in Unicode normal form
NFC. Only a holder of the salt can test whether a name is among the hashes.
"""

import hashlib
import os
import secrets
import unicodedata
import zoneinfo
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
from filelock import FileLock, Timeout

from storage.atomic import link_if_missing, replaced_database
from storage.catalogue.connection import (
    connect,
    escape_quotes,
    full_disk_as_oserror,
    migrate,
    read_migrations,
    transaction,
)
from storage.home.workspace import HomeLocked
from storage.home.zones import home_zone, read_zone

FILE = "likes.duckdb"
SALT = "likes.salt"
MIGRATIONS = Path(__file__).resolve().parent / "schema_likes"
WAIT_SECONDS = 10.0  # maximum wait for the lock
STATED = "stated"  # source of opinions that a viewer stated; they take precedence over watched programmes

# Columns of likes (described in schema_likes). ``viewer`` is a name, which add_likes hashes.
LIKES = pa.schema(
    dict.fromkeys(("viewer", "show_key", "episode", "sub_title", "source", "title"), pa.string())
    | {"time": pa.timestamp("us"), "value": pa.float32(), "seen": pa.bool_()}
)
# One row per viewer and title: the last stated opinion, else the mean over watched programmes. Formatted
# instead of parameterized, because DuckDB imports pandas for parameters (storage/catalogue/evening.py).
_OPINIONS = """
    SELECT viewer, show_key, arg_max(title, time) AS title, max(time) AS time,
           coalesce(arg_max(value, time) FILTER (source = '{stated}'), avg(value))::FLOAT AS value
    FROM likes
    WHERE {condition}
    GROUP BY viewer, show_key
    HAVING coalesce(arg_max(value, time) FILTER (source = '{stated}'), avg(value)) != 0
    ORDER BY viewer, show_key
"""
_SEEN = """
    SELECT DISTINCT viewer, show_key, episode, sub_title
    FROM likes
    WHERE seen AND {condition}
    ORDER BY ALL
"""
# Of two rows with the same key the later one is used; ``seen`` is never reset.
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
    """Hashes the name of a viewer. Creates the salt of the home at the first use."""
    return _hash(home_salt(Path(home)), name)


def add_likes(home: Path, rows: pa.Table) -> int:
    """Stores rows (schema LIKES) and returns the number of new rows. Storing them again changes nothing.

    Raises:
        HomeLocked: Another process holds the lock for longer than ``WAIT_SECONDS``.
    """
    salt, names = home_salt(Path(home)), rows["viewer"].to_pylist()
    hashes = {name: _hash(salt, name) for name in set(names)}
    column = pa.array([hashes[name] for name in names], pa.string())
    hashed = rows.select(LIKES.names).cast(LIKES).set_column(0, "viewer", column)
    with _open(Path(home)) as connection, transaction(connection):
        previous_count = _count(connection)
        connection.register("hashed", hashed)
        connection.execute(_ADD)
        connection.unregister("hashed")
        return _count(connection) - previous_count


def read_likes(home: Path, viewer: str | None = None) -> tuple[pa.Table, pa.Table]:
    """Reads opinions and watched episodes of one viewer (a hash), or of all viewers if it is None.

    Returns:
        Opinions (viewer, show_key, title, time, value other than 0), one row per viewer and show, and
        watched episodes (viewer, show_key, episode, sub_title).
    """
    with _open(Path(home)) as connection:
        return _read(connection, viewer)


@contextmanager
def unchanged_likes(home: Path, opinions: pa.Table) -> Iterator[bool]:
    """Locks likes, and yields whether the opinions that ``read_likes`` returned are still current."""
    viewers = opinions["viewer"].unique().to_pylist()
    with _open(home) as connection:
        current, _ = _read(connection, viewers[0] if len(viewers) == 1 else None)
        yield current.equals(opinions)


def _read(connection: duckdb.DuckDBPyConnection, viewer: str | None) -> tuple[pa.Table, pa.Table]:
    condition = "true" if viewer is None else f"viewer = '{escape_quotes(viewer)}'"
    queries = _OPINIONS.format(condition=condition, stated=STATED), _SEEN.format(condition=condition)
    opinions, seen = (connection.sql(query).to_arrow_table() for query in queries)
    return opinions, seen


def set_viewer_zone(home: Path, name: str, zone: str) -> None:
    """Stores the time zone of a viewer, an IANA name."""
    with _open(home) as connection:
        connection.execute("INSERT OR REPLACE INTO viewers VALUES (?, ?)", [hash_viewer(home, name), zone])


def viewer_zones(home: Path) -> dict[str, str]:
    """Returns the time zones of the viewers (hashes) for whom one is stored."""
    if not (home / FILE).exists():
        return {}
    with _open(home) as connection:
        return dict(connection.execute("FROM viewers").fetchall())


def viewer_zone(home: Path, name: str) -> zoneinfo.ZoneInfo:
    """Returns the zone of a viewer: the stored one, else that of the home."""
    zones = viewer_zones(home)
    stored = zones.get(hash_viewer(home, name)) if zones else None
    return read_zone(stored) if stored else home_zone(home)


def forget_viewer(home: Path, name: str) -> int:
    """Rewrites the file without the data of a viewer, and returns the number of removed likes."""
    home = Path(home)
    file, viewer = home / FILE, hash_viewer(home, name)
    with locked_likes(home):
        if not file.exists():
            return 0
        _connect(file).close()  # migrates the file of an older version
        with full_disk_as_oserror(file), replaced_database(file, _connect) as connection:
            connection.execute(f"ATTACH '{escape_quotes(file)}' AS old (READ_ONLY)")
            query = "SELECT count(*) FROM old.likes WHERE viewer = ?"
            (count,) = connection.execute(query, [viewer]).fetchall()[0]
            connection.execute("INSERT INTO likes SELECT * FROM old.likes WHERE viewer != ?", [viewer])
            connection.execute("INSERT INTO viewers SELECT * FROM old.viewers WHERE viewer != ?", [viewer])
            connection.execute("DETACH old")
        return count


def _hash(salt: str, name: str) -> str:
    return hashlib.sha256((salt + unicodedata.normalize("NFC", name).strip()).encode()).hexdigest()[:32]


def home_salt(home: Path) -> str:
    """Returns the secret salt of the hashes of a home; creates it at the first use."""
    file = home / SALT
    if not file.exists():  # link_if_missing keeps the file of the first of two processes
        new = home / f"{SALT}.{os.getpid()}.tmp"
        with open(
            os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as handle:
            handle.write(secrets.token_hex(32))
        link_if_missing(new, file)
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
        migrate(connection, read_migrations(MIGRATIONS), file)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def locked_likes(home: Path) -> Iterator[None]:
    """Locks the likes, also for reading, because ``forget_viewer`` replaces the file.

    Raises:
        HomeLocked: Another process holds the lock for longer than ``WAIT_SECONDS``.
    """
    try:
        with FileLock(home / "likes.lock", WAIT_SECONDS, mode=0o600):
            yield
    except Timeout as error:
        raise HomeLocked(f"{home / FILE} is being written by another process; try again") from error
