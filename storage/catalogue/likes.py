"""Stores likes, the ratings of titles by viewers, in the DuckDB file ``likes.duckdb`` of a home.

Likes are not in the catalogue of programmes for two reasons. First, the catalogue is locked while a guide is
imported, and viewers should not have to wait. Second, ``forget_viewer`` has to rewrite the whole file,
because DuckDB keeps deleted rows in free blocks, even after VACUUM. The catalogue may have gigabytes, which
would take too long.

A viewer is stored as a hash: the SHA-256 of a salt and the viewer's name, truncated to 128 bits. The salt
consists of 32 random bytes in ``likes.salt``, which only the owner of the file can read. Before hashing,
names are stripped and converted to the Unicode normal form NFC. Without the salt, nobody can test whether a
name is among the hashes.
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

LIKES_FILE = "likes.duckdb"
SALT_FILE = "likes.salt"
MIGRATIONS_FOLDER = Path(__file__).resolve().parent / "schema_likes"
WAIT_SECONDS = 10.0  # maximum wait for the lock
STATED = "stated"  # value of ``source`` for opinions that a viewer stated; they override watched programmes
# Schema of the input of ``add_likes``; schema_likes describes the columns. ``viewer`` is a name, not a hash.
LIKES = pa.schema(
    dict.fromkeys(("viewer", "show_key", "episode", "sub_title", "source", "title"), pa.string())
    | {"time": pa.timestamp("us"), "value": pa.float32(), "seen": pa.bool_()}
)
# Selects one row per viewer and show: the last stated opinion, else the mean value of watched programmes.
# Values are formatted into the query, because DuckDB imports pandas for query parameters (0.14 s).
_OPINIONS_QUERY = """
    SELECT viewer, show_key, arg_max(title, time) AS title, max(time) AS time,
           coalesce(arg_max(value, time) FILTER (source = '{stated}'), avg(value))::FLOAT AS value
    FROM likes
    WHERE {condition}
    GROUP BY viewer, show_key
    HAVING coalesce(arg_max(value, time) FILTER (source = '{stated}'), avg(value)) != 0
    ORDER BY viewer, show_key
"""
_WATCHED_QUERY = """
    SELECT DISTINCT viewer, show_key, episode, sub_title
    FROM likes
    WHERE seen AND {condition}
    ORDER BY ALL
"""
# If two rows have the same key, the later row is stored. ``seen`` (watched) is never reset to false.
_UPSERT_LIKES = """
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
    """Returns the salted hash of a viewer's name, as 32 hexadecimal digits."""
    return _hash_name(home_salt(Path(home)), name)


def add_likes(home: Path, rows: pa.Table) -> int:
    """Stores ratings and watched programmes; storing the same rows again changes nothing.

    Args:
        home: The home folder.
        rows: Table with the schema LIKES.

    Returns:
        Number of new rows.

    Raises:
        HomeLocked: Another process holds the lock for longer than ``WAIT_SECONDS``.
    """
    salt, names = home_salt(Path(home)), rows["viewer"].to_pylist()
    hashes = {name: _hash_name(salt, name) for name in set(names)}
    column = pa.array([hashes[name] for name in names], pa.string())
    hashed_rows = rows.select(LIKES.names).cast(LIKES).set_column(0, "viewer", column)
    with _open_likes(Path(home)) as connection, transaction(connection):
        previous_count = _count_likes(connection)
        connection.register("hashed", hashed_rows)
        connection.execute(_UPSERT_LIKES)
        connection.unregister("hashed")
        return _count_likes(connection) - previous_count


def read_likes(home: Path, viewer: str | None = None) -> tuple[pa.Table, pa.Table]:
    """Reads opinions and watched episodes of one viewer, or of all viewers.

    Args:
        home: The home folder.
        viewer: Hash of the viewer's name; None for all viewers.

    Returns:
        Two tables. The table of opinions has one row per viewer and show, and the columns viewer, show_key,
        title, time and value (not 0). The table of watched episodes has the columns viewer, show_key, episode
        and sub_title.
    """
    with _open_likes(Path(home)) as connection:
        return _query_likes(connection, viewer)


@contextmanager
def unchanged_likes(home: Path, opinions: pa.Table) -> Iterator[bool]:
    """Locks the likes during the block; yields whether ``opinions`` (from ``read_likes``) are unchanged."""
    viewers = opinions["viewer"].unique().to_pylist()
    with _open_likes(home) as connection:
        current_opinions, _ = _query_likes(connection, viewers[0] if len(viewers) == 1 else None)
        yield current_opinions.equals(opinions)


def _query_likes(connection: duckdb.DuckDBPyConnection, viewer: str | None) -> tuple[pa.Table, pa.Table]:
    condition = "true" if viewer is None else f"viewer = '{escape_quotes(viewer)}'"
    opinions_query = _OPINIONS_QUERY.format(condition=condition, stated=STATED)
    watched_query = _WATCHED_QUERY.format(condition=condition)
    return connection.sql(opinions_query).to_arrow_table(), connection.sql(watched_query).to_arrow_table()


def set_viewer_zone(home: Path, name: str, zone: str) -> None:
    """Stores ``zone``, an IANA name, as the time zone of the viewer ``name``."""
    with _open_likes(home) as connection:
        connection.execute("INSERT OR REPLACE INTO viewers VALUES (?, ?)", [hash_viewer(home, name), zone])


def viewer_zones(home: Path) -> dict[str, str]:
    """Returns the stored time zones (IANA names) of viewers, by hash of the viewer's name."""
    if not (home / LIKES_FILE).exists():
        return {}
    with _open_likes(home) as connection:
        return dict(connection.execute("FROM viewers").fetchall())


def viewer_zone(home: Path, name: str) -> zoneinfo.ZoneInfo:
    """Returns the stored time zone of the viewer ``name``, or the time zone of the home if none is stored."""
    zones = viewer_zones(home)
    stored_zone = zones.get(hash_viewer(home, name)) if zones else None
    return read_zone(stored_zone) if stored_zone else home_zone(home)


def forget_viewer(home: Path, name: str) -> int:
    """Rewrites the file without the data of the viewer ``name``; returns the number of removed likes."""
    home = Path(home)
    file, viewer = home / LIKES_FILE, hash_viewer(home, name)
    with locked_likes(home):
        if not file.exists():
            return 0
        _connect(file).close()  # migrates the file of an older version
        with full_disk_as_oserror(file), replaced_database(file, _connect) as connection:
            connection.execute(f"ATTACH '{escape_quotes(file)}' AS old (READ_ONLY)")
            query = "SELECT count(*) FROM old.likes WHERE viewer = ?"
            (removed_count,) = connection.execute(query, [viewer]).fetchall()[0]
            connection.execute("INSERT INTO likes SELECT * FROM old.likes WHERE viewer != ?", [viewer])
            connection.execute("INSERT INTO viewers SELECT * FROM old.viewers WHERE viewer != ?", [viewer])
            connection.execute("DETACH old")
        return removed_count


def _hash_name(salt: str, name: str) -> str:
    return hashlib.sha256((salt + unicodedata.normalize("NFC", name).strip()).encode()).hexdigest()[:32]


def home_salt(home: Path) -> str:
    """Returns the secret salt for hashing the names of viewers of a home; creates it at the first use."""
    file = home / SALT_FILE
    if not file.exists():  # if two processes create the file, link_if_missing keeps the first one
        temporary = home / f"{SALT_FILE}.{os.getpid()}.tmp"
        with open(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as handle:
            handle.write(secrets.token_hex(32))
        link_if_missing(temporary, file)
    return file.read_text(encoding="utf-8")


def _count_likes(connection: duckdb.DuckDBPyConnection) -> int:
    return connection.execute("SELECT count(*) FROM likes").fetchall()[0][0]


@contextmanager
def _open_likes(home: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Locks the likes of a home during the block and yields a connection to their database."""
    with locked_likes(home), closing(_connect(home / LIKES_FILE)) as connection:
        yield connection


def _connect(file: Path) -> duckdb.DuckDBPyConnection:
    """Opens a database of likes; creates it if it is missing, and applies pending migrations."""
    connection = connect(file)
    try:
        migrate(connection, read_migrations(MIGRATIONS_FOLDER), file)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def locked_likes(home: Path) -> Iterator[None]:
    """Holds an exclusive lock on the likes during the block.

    Readers need the lock too, because ``forget_viewer`` replaces the file.

    Raises:
        HomeLocked: Another process holds the lock for longer than ``WAIT_SECONDS``.
    """
    try:
        with FileLock(home / "likes.lock", WAIT_SECONDS, mode=0o600):
            yield
    except Timeout as error:
        raise HomeLocked(f"{home / LIKES_FILE} is being written by another process; try again") from error
