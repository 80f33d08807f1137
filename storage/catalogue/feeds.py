"""Queries and updates the table ``feeds`` of the catalogue, which has one row per import of a feed.

The name of a feed is called its source. After each import, the numbers of programmes are written to
``status.json``. Other programs read this file instead of the database, so that they need not wait while a
feed is imported.
"""

import datetime
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from storage.catalogue.connection import Catalogue, set_memory_limit, transaction
from storage.catalogue.replacing import replace_older
from storage.home.workspace import HomeError
from storage.json_file import read_json_if_exists, write_json

STATUS_FILE = "status.json"
SOURCE_TABLES = ("feeds", "programmes", "channel_history")  # tables with a column ``source``
RENAME_BYTES = 200  # approximate memory that DuckDB needs per programme of a renamed feed
_FEEDS_QUERY = """
    SELECT source, seen, stored, duplicates, rejected, invalid_bytes, coalesce(reasons, MAP {}) AS rejects
    FROM feeds
    LEFT JOIN (SELECT feed_id, histogram(reason) AS reasons FROM rejects GROUP BY feed_id) USING (feed_id)
    ORDER BY feed_id
"""
_TOTALS_QUERY = """
    SELECT (SELECT count(*) FROM channels) AS channels,
           count(*) AS programmes, count(DISTINCT title) AS titles,
           (SELECT count(DISTINCT c) FROM (SELECT unnest(categories) AS c FROM programmes)) AS categories
    FROM programmes
"""


class Counts(NamedTuple):
    """Numbers of programmes in one import of a feed: ``seen = stored + duplicates + rejected``.

    ``invalid_bytes`` is the number of bytes that could not be decoded.
    """

    seen: int
    stored: int
    duplicates: int
    rejected: int
    invalid_bytes: int = 0


class PreviousImport(NamedTuple):
    """Earlier import of a feed."""

    programmes: int  # number of readable programmes
    grabbed_at: datetime.datetime  # instant of the guide (see Grab), naive datetime in UTC


def find_unchanged(
    catalogue: Catalogue,
    source: str,
    digest: str,
    grabbed_at: datetime.datetime | None = None,
    zone: str = "",
) -> Counts | None:
    """Returns the counts of an earlier import of this content, or None if the content has to be imported.

    Args:
        catalogue: Open catalogue.
        source: Name of the feed.
        digest: SHA-256 of the content of the feed.
        grabbed_at: Instant of a dated guide from an archive: only imports of this instant are considered.
            None for the current content of a feed: only the newest import of the feed is considered.
        zone: Time zone of the times in the feed that state none. Content that was imported with another zone
            has to be imported again.
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
    values = {"source": source, "digest": digest, "at": grabbed_at and to_naive_utc(grabbed_at), "zone": zone}
    rows = catalogue.connection.execute(query, values).fetchall()
    return Counts(*rows[0]) if rows else None


def previous_import(
    catalogue: Catalogue, source: str, feed_id: int, grabbed_at: datetime.datetime
) -> PreviousImport | None:
    """Returns the previous import of a feed that had readable programmes, or None if there is none.

    Args:
        catalogue: Open catalogue.
        source: Name of the feed.
        feed_id: Id of the import whose predecessor is returned.
        grabbed_at: Instant of the guide of import ``feed_id`` (see Grab), a naive datetime in UTC.
    """
    query = """
        SELECT seen - rejected, grabbed_at
        FROM feeds
        WHERE source = ? AND seen > rejected AND (grabbed_at, feed_id) < (?, ?)
        ORDER BY grabbed_at DESC, feed_id DESC
        LIMIT 1
    """
    rows = catalogue.connection.execute(query, [source, grabbed_at, feed_id]).fetchall()
    return PreviousImport(*rows[0]) if rows else None


def newest_import(catalogue: Catalogue, source: str) -> tuple[int, datetime.datetime]:
    """Returns the id of the newest import of a feed and the instant of its guide (naive, in UTC)."""
    query = "SELECT arg_max(feed_id, (grabbed_at, feed_id)), max(grabbed_at) FROM feeds WHERE source = ?"
    return catalogue.connection.execute(query, [source]).fetchall()[0]


def last_stop(catalogue: Catalogue, feed_id: int) -> datetime.datetime | None:
    """Returns the end of the last programme of an import, as a naive datetime in UTC.

    Implausibly late ends are ignored. Returns None if the import has no programmes.
    """
    query = "SELECT max(ends) FROM windows WHERE feed_id = ?"
    return catalogue.connection.execute(query, [feed_id]).fetchall()[0][0]


def newest_imports(catalogue: Catalogue, location: str) -> list[tuple[str, str, Counts]]:
    """Returns the newest import of each feed at a location, as tuples (name of the feed, time zone, counts).

    ``location`` is a path or a URL. A location has several feeds if it is an archive.
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
    """Returns the ETag and Last-Modified of the last HTTP response of a URL; None for an unknown value."""
    query = "SELECT etag, last_modified FROM validators WHERE source = ?"
    rows = catalogue.connection.execute(query, [location]).fetchall()
    return rows[0] if rows else (None, None)


def store_validators(
    catalogue: Catalogue, location: str, etag: str | None, last_modified: str | None
) -> None:
    """Stores the ETag and Last-Modified of a URL; must be called after all feeds of the URL were stored."""
    query = "INSERT OR REPLACE INTO validators VALUES (?, ?, ?)"
    catalogue.connection.execute(query, [location, etag, last_modified])


def require_feed_before(catalogue: Catalogue, instant: datetime.datetime) -> None:
    """Raises HomeError if all guides in the catalogue are newer than ``instant``."""
    query = "SELECT min(grabbed_at), max(grabbed_at) FROM feeds"
    first, last = catalogue.connection.execute(query).fetchall()[0]
    if first is None or to_naive_utc(instant) < first:
        dates = (
            f"its guides are from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"
            if first
            else "it has no guides"
        )
        raise HomeError(
            f"{catalogue.home} has no guide as of {to_naive_utc(instant):%Y-%m-%d %H:%M} UTC: {dates}. "
            "Name a later date, or read dated guides: `guidespace backfill --help`."
        )


def list_sources(catalogue: Catalogue) -> list[str]:
    """Returns the names of all feeds in the order in which they were first imported."""
    query = "SELECT source FROM feeds GROUP BY source ORDER BY min(feed_id)"
    return [source for (source,) in catalogue.connection.execute(query).fetchall()]


def rename_sources(catalogue: Catalogue, new_names: Mapping[str, str]) -> None:
    """Renames feeds in one transaction.

    If several feeds get one new name, they become one feed: the programmes of an older guide are replaced by
    those of the next guide that covers their time.

    Args:
        catalogue: Open catalogue.
        new_names: Maps old names to new names. The catalogue must not contain the new names yet.
    """
    connection = catalogue.connection
    query = "SELECT count(*) FROM programmes WHERE list_contains($old, source)"
    (programme_count,) = connection.execute(query, {"old": list(new_names)}).fetchall()[0]
    set_memory_limit(connection, programme_count * RENAME_BYTES)
    try:
        with transaction(connection):
            for old_name, new_name in new_names.items():
                for table in SOURCE_TABLES:
                    connection.execute(
                        f"UPDATE {table} SET source = ? WHERE source = ?", [new_name, old_name]
                    )
                connection.execute("DELETE FROM validators WHERE source = ?", [old_name])
            for new_name, feed_count in Counter(new_names.values()).items():
                if feed_count > 1:
                    replace_older(connection, new_name)
    finally:
        set_memory_limit(connection, 0)


def count_contents(catalogue: Catalogue) -> dict[str, object]:
    """Returns the content of ``status.json`` (docs/json.md): all imports of feeds, and total numbers.

    The values of "titles" and "categories" are numbers of distinct titles and categories.
    """
    results = [catalogue.connection.sql(query) for query in (_FEEDS_QUERY, _TOTALS_QUERY)]
    feeds, (totals,) = ([dict(zip(rows.columns, row)) for row in rows.fetchall()] for rows in results)
    return {"feeds": feeds, **totals}


def publish_status(catalogue: Catalogue) -> None:
    """Writes the imports of feeds and the total numbers of the catalogue to ``status.json`` atomically."""
    write_json(catalogue.home / STATUS_FILE, count_contents(catalogue))


def read_status(home: Path) -> dict[str, object]:
    """Reads ``status.json``; returns zeros and no feeds if nothing was imported into the home yet."""
    no_status = {"feeds": [], "channels": 0, "programmes": 0, "titles": 0, "categories": 0}
    return read_json_if_exists(home / STATUS_FILE) or no_status


def to_naive_utc(moment: datetime.datetime) -> datetime.datetime:
    """Converts a datetime to a naive datetime in UTC, the form in which the catalogue stores times."""
    return moment.astimezone(datetime.UTC).replace(tzinfo=None)
