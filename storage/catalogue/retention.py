"""Deletes programmes that a later version of their feed replaced long ago.

Current programmes and the stored numbers of programmes per feed do not change. After the deletion, a guide as
of an early date would be incomplete. Therefore, ``home.json`` stores the instant since which the history is
complete, and a request for an earlier guide is an error.
"""

import datetime
from pathlib import Path

from storage.catalogue.connection import CATALOGUE_FILE, Catalogue, copy_database, transaction
from storage.catalogue.feeds import publish_status, to_naive_utc
from storage.catalogue.replacing import PROGRAMME_TABLES
from storage.home.marker import read_marker, write_marker
from storage.home.retention import RemovalResult
from storage.home.workspace import HomeError

HISTORY_START = "known_since"  # key in home.json; the value is an instant in UTC
REMOVED_KIND = "replaced programmes"
_REPLACED_PROGRAMMES_QUERY = """
    SELECT programme_id
    FROM programmes
    JOIN feeds ON feeds.feed_id = replaced_by
    WHERE grabbed_at < ?
"""
_BLOCK_COUNTS_QUERY = """
    SELECT used_blocks, free_blocks
    FROM pragma_database_size()
    WHERE database_name = current_database()
"""


def delete_replaced_programmes(
    home: Path, replaced_before: datetime.datetime, *, dry_run: bool = False
) -> RemovalResult:
    """Deletes programmes that were replaced before an instant.

    Shrinks the database file if most of it is free. The caller must hold the lock of the home. If ``dry_run``
    is set, the programmes are only counted.

    Raises:
        HomeLocked: Another process has the catalogue open.
    """
    file, instant = home / CATALOGUE_FILE, to_naive_utc(replaced_before)
    if not file.exists():
        return RemovalResult(what=REMOVED_KIND)
    size = file.stat().st_size
    with Catalogue.open(home) as catalogue:
        connection = catalogue.connection
        connection.execute(f"CREATE OR REPLACE TEMP TABLE old AS {_REPLACED_PROGRAMMES_QUERY}", [instant])
        old_count = connection.execute("SELECT count(*) FROM old").fetchall()[0][0]
        if dry_run:
            return RemovalResult(what=REMOVED_KIND, count=old_count)
        if old_count:
            write_marker(home, **{HISTORY_START: max(instant.isoformat(), history_start(home))})
            with transaction(connection):
                for table in PROGRAMME_TABLES:
                    connection.execute(f"DELETE FROM {table} WHERE programme_id IN (FROM old)")
            publish_status(catalogue)
            connection.execute("CHECKPOINT")
        used_blocks, free_blocks = connection.execute(_BLOCK_COUNTS_QUERY).fetchall()[0]
    if free_blocks > used_blocks:
        copy_database(file, file)
    return RemovalResult(what=REMOVED_KIND, count=old_count, bytes=max(0, size - file.stat().st_size))


def history_start(home: Path) -> str:
    """Returns the instant (ISO, UTC) since which a home's history is complete; '' if nothing was deleted."""
    return read_marker(home).get(HISTORY_START, "")


def require_history(home: Path, instant: datetime.datetime | None) -> None:
    """Raises HomeError if programmes of the guide as of ``instant`` (naive, in UTC) may have been deleted."""
    if instant and instant.isoformat() < (start := history_start(home)):
        raise HomeError(
            f"{home} no longer has the guide as of {instant:%Y-%m-%d %H:%M} UTC: `guidespace gc` removed "
            f"programmes that were replaced before {start[:16].replace('T', ' ')} UTC. Use a later date."
        )
