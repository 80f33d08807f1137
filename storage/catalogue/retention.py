"""What the catalogue may forget: wordings that a later grab replaced long ago.

Current programmes, grabs, windows and rejects stay, so nights and the ledger's sums are as before. What is
lost is the answer to "what was known on that day?" for days before; ``home.json`` notes the first instant
that can be answered, and a snapshot of an earlier one is refused.
"""

import datetime
from pathlib import Path

from storage.catalogue.connection import FILE, Catalogue, copy_database, transaction
from storage.catalogue.feeds import publish_status, utc
from storage.catalogue.replacing import TABLES
from storage.home.marker import read_marker, write_marker
from storage.home.retention import Removed
from storage.home.workspace import HomeError

KNOWN_SINCE = "known_since"  # key in home.json: instant in UTC
WHAT = "replaced wordings"
_OLD = """
    SELECT programme_id
    FROM programmes
    JOIN feeds ON feeds.feed_id = replaced_by
    WHERE grabbed_at < ?
"""
_BLOCKS = """
    SELECT used_blocks, free_blocks
    FROM pragma_database_size()
    WHERE database_name = current_database()
"""


def forget_wordings(home: Path, before: datetime.datetime, *, dry_run: bool = False) -> Removed:
    """Deletes programmes that were replaced before an instant, and shrinks the file where most of it is free;
    for the home's writer.

    Raises:
        HomeLocked: Another process has the catalogue open.
    """
    file, instant = home / FILE, utc(before)
    if not file.exists():
        return Removed(what=WHAT)
    size = file.stat().st_size
    with Catalogue.open(home) as catalogue:
        connection = catalogue.connection
        connection.execute(f"CREATE OR REPLACE TEMP TABLE old AS {_OLD}", [instant])
        count = connection.execute("SELECT count(*) FROM old").fetchall()[0][0]
        if dry_run:
            return Removed(what=WHAT, count=count)
        if count:
            write_marker(home, **{KNOWN_SINCE: max(instant.isoformat(), known_since(home))})
            with transaction(connection):
                for table in TABLES:
                    gone = "programme_id IN (SELECT programme_id FROM old)"
                    connection.execute(f"DELETE FROM {table} WHERE {gone}")
            publish_status(catalogue)
            connection.execute("CHECKPOINT")
        used, free = connection.execute(_BLOCKS).fetchall()[0]
    if free > used:
        copy_database(file, file)
    return Removed(what=WHAT, count=count, bytes=max(0, size - file.stat().st_size))


def known_since(home: Path) -> str:
    """ISO instant (UTC, without a zone) before which replaced wordings were forgotten; empty: none were."""
    return read_marker(home).get(KNOWN_SINCE, "")


def check_instant(home: Path, instant: datetime.datetime | None) -> None:
    """Raises HomeError if what was known at an instant (UTC without a zone) was forgotten."""
    if instant and instant.isoformat() < (since := known_since(home)):
        gone = f"what was known on {instant:%Y-%m-%d %H:%M} UTC is no longer in {home}"
        day = f"{since[:16].replace('T', ' ')} UTC"
        raise HomeError(f"{gone}: `guidespace gc` removed what was replaced before {day}. Name a later one.")
