"""What is known of the feeds that were read: unchanged? what came before? their names, and their counts.

The counts are published as ``status.json`` after each committed feed. Other programs read that file and never
open the database, so neither waits for the other.

DuckDB 2.0.0 lost rows: under a memory limit it could not scan what a statement of the same transaction had
inserted. A large reading of a known source was then recorded as all duplicates and without a window, which no
other reading is. Such a reading does not count, so reading the feed again repairs it.
"""

import datetime
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from storage.catalogue.connection import Catalogue, allow_memory, transaction
from storage.catalogue.replacing import replace_older
from storage.home.workspace import HomeError
from storage.json_file import write_json

STATUS = "status.json"
TABLES = ("feeds", "programmes", "channel_history")  # that name the source
RENAME = 200  # bytes that DuckDB needs for a programme that it renames, about
# Condition on a row of ``feeds``, until the same bytes are read again.
LOST = """
    (seen > rejected AND stored = 0
     AND NOT EXISTS (FROM windows WHERE windows.feed_id = feeds.feed_id)
     AND NOT EXISTS (
        FROM feeds AS again
        WHERE (again.source, again.content_digest) = (feeds.source, feeds.content_digest)
          AND again.feed_id > feeds.feed_id
     ))
"""
# The newest reading of each feed of a location; a zip of guides has several.
_NEWEST = """
    (FROM feeds
     WHERE source = $location OR starts_with(source, $location || '!')
     QUALIFY row_number() OVER (PARTITION BY source ORDER BY grabbed_at DESC, feed_id DESC) = 1)
"""
_FEEDS = f"""
    SELECT source, seen, stored, duplicates, rejected, invalid_bytes, coalesce(reasons, MAP {{}}) AS rejects,
           {LOST} AS lost
    FROM feeds
    LEFT JOIN (SELECT feed_id, histogram(reason) AS reasons FROM rejects GROUP BY feed_id) USING (feed_id)
    ORDER BY feed_id
"""
_TOTALS = """
    SELECT (SELECT count(*) FROM channels) AS channels,
           count(*) AS programmes, count(DISTINCT title) AS titles,
           (SELECT count(DISTINCT c) FROM (SELECT unnest(categories) AS c FROM programmes)) AS categories
    FROM programmes
"""


class Counts(NamedTuple):
    """Programmes of a reading: ``seen = stored + duplicates + rejected``; and its bytes that were invalid."""

    seen: int
    stored: int
    duplicates: int
    rejected: int
    invalid_bytes: int = 0


class Before(NamedTuple):
    """The last earlier reading of a source that had a readable programme; UTC without a zone."""

    programmes: int
    grabbed_at: datetime.datetime


def has_read(
    catalogue: Catalogue,
    source: str,
    digest: str,
    grabbed_at: datetime.datetime | None = None,
    zone: str = "",
) -> Counts | None:
    """Counts of the earlier reading of the same content, or None if the feed has to be read.

    Args:
        grabbed_at: Date of a dated guide: bytes read before with that date are not read again. None: these
            are the source's current bytes, which are compared with its newest reading only.
        zone: Zone of times that name none. The same bytes in another zone are read again.
    """
    query = f"""
        SELECT seen, stored, duplicates, rejected, invalid_bytes
        FROM (
            FROM feeds
            WHERE source = $source AND NOT {LOST}
              AND ($at::TIMESTAMP IS NULL OR (content_digest = $digest AND grabbed_at = $at))
            ORDER BY grabbed_at DESC, feed_id DESC
            LIMIT 1
        )
        WHERE content_digest = $digest AND zone = $zone
    """
    values = {"source": source, "digest": digest, "at": grabbed_at and utc(grabbed_at), "zone": zone}
    rows = catalogue.connection.execute(query, values).fetchall()
    return Counts(*rows[0]) if rows else None


def reading_before(catalogue: Catalogue, source: str, feed_id: int, at: datetime.datetime) -> Before | None:
    """The reading to compare reading ``feed_id`` of that source with; ``at`` is when that was made."""
    query = """
        SELECT seen - rejected, grabbed_at
        FROM feeds
        WHERE source = ? AND seen > rejected AND (grabbed_at, feed_id) < (?, ?)
        ORDER BY grabbed_at DESC, feed_id DESC
        LIMIT 1
    """
    rows = catalogue.connection.execute(query, [source, at, feed_id]).fetchall()
    return Before(*rows[0]) if rows else None


def last_reading(catalogue: Catalogue, source: str) -> tuple[int, datetime.datetime]:
    """feed_id and grabbed_at of the newest reading of a known source."""
    query = "SELECT arg_max(feed_id, (grabbed_at, feed_id)), max(grabbed_at) FROM feeds WHERE source = ?"
    return catalogue.connection.execute(query, [source]).fetchall()[0]


def end_of(catalogue: Catalogue, feed_id: int) -> datetime.datetime | None:
    """When the last programme of a reading ends (odd stops ignored), UTC without a zone; None without any."""
    query = "SELECT max(ends) FROM windows WHERE feed_id = ?"
    return catalogue.connection.execute(query, [feed_id]).fetchall()[0][0]


def last_readings(catalogue: Catalogue, location: str) -> list[tuple[str, str, Counts]]:
    """Source, zone and counts of the newest reading of each feed of a location."""
    query = f"SELECT source, zone, {', '.join(Counts._fields)} FROM {_NEWEST} ORDER BY source"
    rows = catalogue.connection.execute(query, {"location": location}).fetchall()
    return [(source, zone, Counts(*counts)) for source, zone, *counts in rows]


def recall_validators(catalogue: Catalogue, location: str) -> tuple[str | None, str | None]:
    """(ETag, Last-Modified) of a location's last response; both None if unknown or if its rows were lost."""
    query = f"""
        SELECT etag, last_modified
        FROM validators
        WHERE source = $location AND NOT EXISTS (FROM {_NEWEST} AS feeds WHERE {LOST})
    """
    rows = catalogue.connection.execute(query, {"location": location}).fetchall()
    return rows[0] if rows else (None, None)


def note_validators(catalogue: Catalogue, location: str, etag: str | None, last_modified: str | None) -> None:
    """Stores them; call it when all that the location holds is committed."""
    query = "INSERT OR REPLACE INTO validators VALUES (?, ?, ?)"
    catalogue.connection.execute(query, [location, etag, last_modified])


def check_known(catalogue: Catalogue, instant: datetime.datetime) -> None:
    """Raises HomeError if nothing had been read at an instant, with the first that can be asked for."""
    query = "SELECT min(grabbed_at), max(grabbed_at) FROM feeds"
    first, last = catalogue.connection.execute(query).fetchall()[0]
    if first is None or utc(instant) < first:
        known = (
            f"its guides are of {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"
            if first
            else "it has none"
        )
        asked = f"{catalogue.home} knew no guide on {utc(instant):%Y-%m-%d %H:%M} UTC: {known}"
        raise HomeError(f"{asked}. Name a later date, or read dated guides: `guidespace backfill --help`.")


def known_sources(catalogue: Catalogue) -> list[str]:
    """All sources, in the order in which they were first read."""
    query = "SELECT source FROM feeds GROUP BY source ORDER BY min(feed_id)"
    return [source for (source,) in catalogue.connection.execute(query).fetchall()]


def rename_sources(catalogue: Catalogue, names: Mapping[str, str]) -> None:
    """Renames sources (old to new name, none of which is in the catalogue), all or none.

    Where several become one, an older grab's programmes are replaced by the next grab that covers their time.
    """
    connection = catalogue.connection
    count = "SELECT count(*) FROM programmes WHERE list_contains($old, source)"
    allow_memory(connection, connection.execute(count, {"old": list(names)}).fetchall()[0][0] * RENAME)
    try:
        with transaction(connection):
            for old, new in names.items():
                for table in TABLES:
                    connection.execute(f"UPDATE {table} SET source = ? WHERE source = ?", [new, old])
                connection.execute("DELETE FROM validators WHERE source = ?", [old])
            for new, several in Counter(names.values()).items():
                if several > 1:
                    replace_older(connection, new)
    finally:
        allow_memory(connection, 0)


def describe(catalogue: Catalogue) -> dict[str, object]:
    """``{"feeds": [{"source", "seen", "stored", "duplicates", "rejected", "invalid_bytes", "rejects":
    {reason: n}, "lost"}], "channels", "programmes", "titles", "categories"}``; feeds in the order they were
    read, titles and categories distinct. ``lost``: see above.
    """
    found = [catalogue.connection.sql(query) for query in (_FEEDS, _TOTALS)]
    feeds, (totals,) = ([dict(zip(rows.columns, row)) for row in rows.fetchall()] for rows in found)
    return {"feeds": feeds, **totals}


def publish_status(catalogue: Catalogue) -> None:
    """Writes ``status.json`` atomically."""
    write_json(catalogue.home / STATUS, describe(catalogue))


def status(home: Path) -> dict[str, object]:
    """The counts as of the last committed feed; zeros for a home without a catalogue."""
    try:
        return json.loads((Path(home) / STATUS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"feeds": [], "channels": 0, "programmes": 0, "titles": 0, "categories": 0}


def utc(moment: datetime.datetime) -> datetime.datetime:
    """UTC without a zone, as the catalogue keeps it."""
    return moment.astimezone(datetime.UTC).replace(tzinfo=None)
