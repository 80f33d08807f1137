"""Queries about feed readings: unchanged content, previous readings, names of sources, counts.

A reading is one import of a feed (a row of the table ``feeds``), and a source is the name of a feed. Counts
are published as ``status.json`` after each committed feed. Other programs read this file and do not open the
database, so they do not wait for ingest.
"""

import datetime
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from storage.catalogue.connection import Catalogue, set_memory_limit, transaction
from storage.catalogue.replacing import replace_older
from storage.home.workspace import HomeError
from storage.json_file import write_json

STATUS = "status.json"
TABLES = ("feeds", "programmes", "channel_history")  # tables with a column ``source``
RENAME_BYTES = 200  # approximate memory of DuckDB per renamed programme
_FEEDS = """
    SELECT source, seen, stored, duplicates, rejected, invalid_bytes, coalesce(reasons, MAP {}) AS rejects
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
    """Numbers of programmes in a reading (``seen = stored + duplicates + rejected``) and of invalid bytes."""

    seen: int
    stored: int
    duplicates: int
    rejected: int
    invalid_bytes: int = 0


class PreviousReading(NamedTuple):
    """Previous reading of a source that has readable programmes; ``grabbed_at`` is UTC without a zone."""

    programmes: int
    grabbed_at: datetime.datetime


def find_unchanged(
    catalogue: Catalogue,
    source: str,
    digest: str,
    grabbed_at: datetime.datetime | None = None,
    zone: str = "",
) -> Counts | None:
    """Returns the counts of an earlier reading of the same content, or None if the feed has to be read.

    Args:
        catalogue: Open catalogue.
        source: Name of the feed.
        digest: SHA-256 of the feed.
        grabbed_at: Date of a dated guide, which is compared with earlier readings of this date. None for the
            current content of a source, which is compared with its newest reading only.
        zone: Zone of the feed's times that state none. The same content in another zone is read again.
    """
    query = """
        SELECT seen, stored, duplicates, rejected, invalid_bytes
        FROM (
            FROM feeds
            WHERE source = $source
              AND ($at::TIMESTAMP IS NULL OR (content_digest = $digest AND grabbed_at = $at))
            ORDER BY grabbed_at DESC, feed_id DESC
            LIMIT 1
        )
        WHERE content_digest = $digest AND zone = $zone
    """
    values = {"source": source, "digest": digest, "at": grabbed_at and utc(grabbed_at), "zone": zone}
    rows = catalogue.connection.execute(query, values).fetchall()
    return Counts(*rows[0]) if rows else None


def previous_reading(
    catalogue: Catalogue, source: str, feed_id: int, at: datetime.datetime
) -> PreviousReading | None:
    """Returns the reading of a source before ``feed_id``, which was grabbed at ``at``, or None."""
    query = """
        SELECT seen - rejected, grabbed_at
        FROM feeds
        WHERE source = ? AND seen > rejected AND (grabbed_at, feed_id) < (?, ?)
        ORDER BY grabbed_at DESC, feed_id DESC
        LIMIT 1
    """
    rows = catalogue.connection.execute(query, [source, at, feed_id]).fetchall()
    return PreviousReading(*rows[0]) if rows else None


def newest_reading(catalogue: Catalogue, source: str) -> tuple[int, datetime.datetime]:
    """Returns feed_id and grabbed_at of the newest reading of a source in the catalogue."""
    query = "SELECT arg_max(feed_id, (grabbed_at, feed_id)), max(grabbed_at) FROM feeds WHERE source = ?"
    return catalogue.connection.execute(query, [source]).fetchall()[0]


def last_stop(catalogue: Catalogue, feed_id: int) -> datetime.datetime | None:
    """Returns the last plausible stop of a reading (UTC without a zone), or None if it has no programmes."""
    query = "SELECT max(ends) FROM windows WHERE feed_id = ?"
    return catalogue.connection.execute(query, [feed_id]).fetchall()[0][0]


def newest_readings(catalogue: Catalogue, location: str) -> list[tuple[str, str, Counts]]:
    """Returns source, zone and counts of the newest reading of each feed of a location.

    A location that is an archive contains several feeds.
    """
    query = """
        SELECT source, zone, seen, stored, duplicates, rejected, invalid_bytes
        FROM feeds
        WHERE source = $location OR starts_with(source, $location || '!')
        QUALIFY row_number() OVER (PARTITION BY source ORDER BY grabbed_at DESC, feed_id DESC) = 1
        ORDER BY source
    """
    rows = catalogue.connection.execute(query, {"location": location}).fetchall()
    return [(source, zone, Counts(*counts)) for source, zone, *counts in rows]


def load_validators(catalogue: Catalogue, location: str) -> tuple[str | None, str | None]:
    """Returns (ETag, Last-Modified) of the last response of a location; both None if unknown."""
    query = "SELECT etag, last_modified FROM validators WHERE source = ?"
    rows = catalogue.connection.execute(query, [location]).fetchall()
    return rows[0] if rows else (None, None)


def store_validators(
    catalogue: Catalogue, location: str, etag: str | None, last_modified: str | None
) -> None:
    """Stores the validators of a location after all of its feeds are committed."""
    query = "INSERT OR REPLACE INTO validators VALUES (?, ?, ?)"
    catalogue.connection.execute(query, [location, etag, last_modified])


def require_feed_before(catalogue: Catalogue, instant: datetime.datetime) -> None:
    """Raises HomeError if no feed was grabbed until ``instant``; the message states the available dates."""
    query = "SELECT min(grabbed_at), max(grabbed_at) FROM feeds"
    first, last = catalogue.connection.execute(query).fetchall()[0]
    if first is None or utc(instant) < first:
        dates = (
            f"its guides are from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"
            if first
            else "it has no guides"
        )
        raise HomeError(
            f"{catalogue.home} has no guide as of {utc(instant):%Y-%m-%d %H:%M} UTC: {dates}. "
            "Name a later date, or read dated guides: `guidespace backfill --help`."
        )


def list_sources(catalogue: Catalogue) -> list[str]:
    """Returns all sources in the order in which they were first read."""
    query = "SELECT source FROM feeds GROUP BY source ORDER BY min(feed_id)"
    return [source for (source,) in catalogue.connection.execute(query).fetchall()]


def rename_sources(catalogue: Catalogue, names: Mapping[str, str]) -> None:
    """Renames sources in one transaction.

    If several sources get the same name, programmes of older grabs are replaced by the next grab that covers
    their time.

    Args:
        catalogue: Open catalogue.
        names: Maps the old name to the new one. New names must not be in the catalogue yet.
    """
    connection = catalogue.connection
    count = "SELECT count(*) FROM programmes WHERE list_contains($old, source)"
    (programmes,) = connection.execute(count, {"old": list(names)}).fetchall()[0]
    set_memory_limit(connection, programmes * RENAME_BYTES)
    try:
        with transaction(connection):
            for old, new in names.items():
                for table in TABLES:
                    connection.execute(f"UPDATE {table} SET source = ? WHERE source = ?", [new, old])
                connection.execute("DELETE FROM validators WHERE source = ?", [old])
            for new, count in Counter(names.values()).items():
                if count > 1:
                    replace_older(connection, new)
    finally:
        set_memory_limit(connection, 0)


def describe(catalogue: Catalogue) -> dict[str, object]:
    """Returns the content of ``status.json`` (docs/json.md).

    Feeds are in the order of reading; titles and categories are numbers of distinct values.
    """
    results = [catalogue.connection.sql(query) for query in (_FEEDS, _TOTALS)]
    feeds, (totals,) = ([dict(zip(rows.columns, row)) for row in rows.fetchall()] for rows in results)
    return {"feeds": feeds, **totals}


def publish_status(catalogue: Catalogue) -> None:
    """Writes ``status.json`` atomically."""
    write_json(catalogue.home / STATUS, describe(catalogue))


def read_status(home: Path) -> dict[str, object]:
    """Reads ``status.json``; returns zeros for a home without a catalogue."""
    try:
        return json.loads((Path(home) / STATUS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"feeds": [], "channels": 0, "programmes": 0, "titles": 0, "categories": 0}


def utc(moment: datetime.datetime) -> datetime.datetime:
    """Converts to UTC without a zone, as stored in the catalogue."""
    return moment.astimezone(datetime.UTC).replace(tzinfo=None)
