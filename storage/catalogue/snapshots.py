"""Snapshots: the catalogue's content as Parquet files that anyone may read while the next feed is being written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from storage.catalogue.connection import Catalogue

PARQUET = "(FORMAT parquet, COMPRESSION zstd)"


def included_feeds(catalogue: Catalogue, leave_out: Sequence[str]) -> list[tuple[int, str, str]]:
    """(feed_id, source, content digest) of the readings whose source matches none of the fnmatch patterns, as read."""
    rows = catalogue.connection.execute("SELECT feed_id, source, content_digest FROM feeds ORDER BY feed_id").fetchall()
    return [row for row in rows if not any(fnmatchcase(row[1], pattern) for pattern in leave_out)]


def snapshot_digest(catalogue: Catalogue, leave_out: Sequence[str] = ()) -> str:
    """SHA-256 over the schema's version, the included readings in their order, and what is left out.

    The order counts: of two readings that say the same (channel, start, title), the first one's row is kept.
    """
    ledger = [feed[1:] for feed in included_feeds(catalogue, leave_out)]
    return hashlib.sha256(json.dumps([catalogue.schema_version, ledger, sorted(set(leave_out))]).encode()).hexdigest()


def snapshot(catalogue: Catalogue, folder: Path, leave_out: Sequence[str] = ()) -> dict[str, int]:
    """Writes programmes.parquet, channels.parquet and feeds.parquet, each in a fixed order.

    Args:
        folder: An existing folder.
        leave_out: fnmatch patterns; a source that matches one stays in the catalogue only.

    Returns:
        Rows of each file, by its name without suffix.
    """
    connection = catalogue.connection
    feeds = [feed[0] for feed in included_feeds(catalogue, leave_out)]
    connection.execute("CREATE OR REPLACE TEMP TABLE included AS SELECT feed_id, source FROM feeds WHERE feed_id IN (SELECT unnest(?::INTEGER[]))", [feeds])
    queries = {
        "programmes": """
            SELECT source, channel, start, stop, title, title_language, sub_title, categories, episode_numbers, date
            FROM programmes
            WHERE source IN (SELECT source FROM included)
            ORDER BY source, channel, start, title
        """,
        "channels": """
            SELECT source, channel, name
            FROM channels
            WHERE source IN (SELECT source FROM included)
            ORDER BY source, channel
        """,
        "feeds": """
            SELECT source, content_digest, seen, stored, duplicates, rejected
            FROM feeds
            WHERE feed_id IN (SELECT feed_id FROM included)
            ORDER BY feed_id
        """,
    }
    counts: dict[str, int] = {}
    for name, query in queries.items():
        place = str(folder / f"{name}.parquet").replace("'", "''")
        counts[name] = connection.execute(f"COPY ({query}) TO '{place}' {PARQUET}").fetchall()[0][0]
    connection.execute("DROP TABLE included")
    return counts
