"""The ledger of feeds: what was read when, what came of it; and the one way to add a reading.

A reading is one transaction. Its programmes are staged as they come, and when the feed has ended each (channel, start,
title) is stored once: the first of the feed, unless the catalogue holds it from an earlier reading of the same source.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from storage.catalogue.connection import Catalogue

STRINGS = pa.list_(pa.string())
PROGRAMMES = pa.schema(
    [
        ("channel", pa.string()),
        ("start", pa.timestamp("us")),
        ("stop", pa.timestamp("us")),
        ("stop_note", pa.string()),
        ("title", pa.string()),
        ("title_language", pa.string()),
        ("sub_title", pa.string()),
        ("categories", STRINGS),
        ("episode_numbers", STRINGS),
        ("date", pa.string()),
    ]
)
CHANNELS = pa.schema([("channel", pa.string()), ("name", pa.string())])
REJECTS = pa.schema([("line", pa.int64()), ("reason", pa.string()), ("excerpt", pa.string())])


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What became of a feed's programmes: ``seen = stored + duplicates + rejected``."""

    seen: int
    stored: int
    duplicates: int
    rejected: int


@dataclass
class Reading:
    """A feed being read into the catalogue, inside its transaction."""

    connection: duckdb.DuckDBPyConnection
    feed_id: int
    source: str
    staged: int = 0
    rejected: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    counts: Counts | None = None

    def add_programmes(self, rows: pa.RecordBatch) -> None:
        """Stages programmes (schema PROGRAMMES), in the feed's order."""
        self.connection.register("arriving", rows)
        self.connection.execute("INSERT INTO staged SELECT * FROM arriving")
        self.connection.unregister("arriving")
        self.staged += rows.num_rows

    def add_channels(self, rows: pa.RecordBatch) -> None:
        """Stores channels (schema CHANNELS); a channel known already takes the new name, the first one in ``rows``."""
        self.connection.register("arriving", rows)
        self.connection.execute(
            """
            INSERT INTO channels
            SELECT $source, channel, first(name)
            FROM arriving
            GROUP BY channel
            ON CONFLICT DO UPDATE SET name = excluded.name
            """,
            {"source": self.source},
        )
        self.connection.unregister("arriving")

    def add_rejects(self, rows: pa.RecordBatch) -> None:
        """Keeps what could not be read (schema REJECTS); each row counts as one programme seen and rejected."""
        self.connection.register("arriving", rows)
        self.connection.execute("INSERT INTO rejects SELECT $feed_id, line, reason, excerpt FROM arriving", {"feed_id": self.feed_id})
        self.connection.unregister("arriving")
        self.rejected += rows.num_rows
        for reason in rows.column("reason").to_pylist():
            self.reasons[reason] = self.reasons.get(reason, 0) + 1

    def settle(self) -> Counts:
        """Moves the staged programmes into the catalogue, without the duplicates."""
        stored = self.connection.execute(
            """
            INSERT INTO programmes
            SELECT $feed_id, $source, staged.*
            FROM staged
            WHERE rowid IN (SELECT min(rowid) FROM staged GROUP BY channel, start, title)
              AND NOT EXISTS (
                  FROM programmes AS known
                  WHERE known.source = $source
                    AND known.channel = staged.channel
                    AND known.start = staged.start
                    AND known.title = staged.title
              )
            """,
            {"feed_id": self.feed_id, "source": self.source},
        ).fetchall()[0][0]
        self.connection.execute(
            """
            INSERT INTO channels
            SELECT DISTINCT $source, channel, channel
            FROM staged
            ON CONFLICT DO NOTHING
            """,
            {"source": self.source},
        )
        self.counts = Counts(seen=self.staged + self.rejected, stored=stored, duplicates=self.staged - stored, rejected=self.rejected)
        return self.counts


def has_read(catalogue: Catalogue, source: str, content_digest: str) -> Counts | None:
    """The counts of an earlier reading of the same bytes from the same source, or None."""
    rows = catalogue.connection.execute(
        "SELECT seen, stored, duplicates, rejected FROM feeds WHERE source = ? AND content_digest = ?",
        [source, content_digest],
    ).fetchall()
    return Counts(seen=rows[0][0], stored=rows[0][1], duplicates=rows[0][2], rejected=rows[0][3]) if rows else None


@contextmanager
def reading(catalogue: Catalogue, *, source: str, content_digest: str, size: int, read_at: datetime.datetime) -> Iterator[Reading]:
    """One feed, one transaction: all of it is there after the block, or nothing when the block raises (or dies).

    Args:
        size: Bytes as stored.
        read_at: With a time zone; kept in UTC.
    """
    connection = catalogue.connection
    connection.execute("CREATE OR REPLACE TEMP TABLE staged AS SELECT * EXCLUDE (feed_id, source) FROM programmes LIMIT 0")
    connection.begin()
    try:
        feed_id = connection.execute("SELECT coalesce(max(feed_id), 0) + 1 FROM feeds").fetchall()[0][0]
        draft = Reading(connection, feed_id, source)
        yield draft
        counts = draft.counts or draft.settle()
        connection.execute(
            "INSERT INTO feeds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [feed_id, source, content_digest, size, read_at.astimezone(datetime.UTC).replace(tzinfo=None), counts.seen, counts.stored, counts.duplicates, counts.rejected],
        )
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    finally:
        connection.execute("DROP TABLE IF EXISTS staged")
