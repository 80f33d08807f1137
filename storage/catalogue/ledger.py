"""The ledger of feeds: what was read when, what came of it; and the one way to add a reading.

A reading is one transaction. Programmes of a source never read before go straight into their table (a third faster than
by way of another one); those of a known source wait in temporary tables until replacing.py has compared them with what
the source said before.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

import duckdb
import numpy as np
import pyarrow as pa

from storage.catalogue.channels import write_channel_history
from storage.catalogue.connection import Catalogue
from storage.catalogue.lost import LOST
from storage.catalogue.open_ends import OpenEnds
from storage.catalogue.replacing import Grab, drop_doubles, infer_stops, replace, write_windows

Rows: TypeAlias = pa.RecordBatch | pa.Table
TABLES = ("programmes", "details", "originals")


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What became of a feed's programmes: ``seen = stored + duplicates + rejected``."""

    seen: int
    stored: int
    duplicates: int
    rejected: int


class LedgerError(Exception):
    """The rows of a reading do not add up; nothing of it is kept."""


@dataclass
class Reading:
    """A feed being read into the catalogue, inside its transaction."""

    connection: duckdb.DuckDBPyConnection
    grab: Grab
    next_id: int
    staged: int = 0
    channels: int = 0
    rejected: int = 0
    open_ends: OpenEnds = field(default_factory=OpenEnds)
    reasons: dict[str, int] = field(default_factory=dict)
    counts: Counts | None = None

    def add_programmes(self, rows: Rows, details: Rows | None = None, originals: Rows | None = None) -> None:
        """Adds programmes (schema PROGRAMMES), in the feed's order.

        Args:
            details: What else they say (schema DETAILS).
            originals: Their text before it was cleaned (schema ORIGINALS).
        """
        rows = self.open_ends.fill(rows)
        ids = pa.array(np.arange(self.next_id, self.next_id + rows.num_rows))
        self._insert(f"{self.grab.prefix}programmes SELECT programme_id, $feed_id, NULL, $source, * EXCLUDE (programme_id)", rows.append_column("programme_id", ids), self._names)
        for name, further in (("details", details), ("originals", originals)):
            if further is not None and further.num_rows:
                self._insert(f"{self.grab.prefix}{name} SELECT row + $first, * EXCLUDE (row)", further, {"first": self.next_id})
        self.next_id += rows.num_rows
        self.staged += rows.num_rows

    def add_channels(self, rows: Rows) -> None:
        """Notes channels (schema CHANNELS) that their source describes otherwise than before; the first of doubles counts."""
        self._insert("arrived SELECT *", rows, {})
        self.channels += rows.num_rows

    def add_root(self, rows: Rows) -> None:
        """Keeps the attributes (schema ROOT) of the feed's root."""
        self._insert("feed_attributes SELECT $feed_id, attribute, value", rows, {"feed_id": self.grab.feed_id})

    def add_rejects(self, rows: Rows) -> None:
        """Keeps what could not be read (schema REJECTS); each row counts as one programme seen and rejected."""
        self._insert("rejects SELECT $feed_id, line, reason, excerpt", rows, {"feed_id": self.grab.feed_id})
        self.rejected += rows.num_rows
        for reason in rows.column("reason").to_pylist():
            self.reasons[reason] = self.reasons.get(reason, 0) + 1

    def settle(self) -> Counts:
        """Takes doubles out, infers stops, and replaces what the source said before of the same channels and times.

        Raises:
            LedgerError: What is stored, double and rejected, each counted, is not what was seen.
        """
        if self.open_ends.count:
            infer_stops(self.connection, self.grab, self.open_ends)
        duplicates = drop_doubles(self.connection, self.grab, self.staged)
        write_windows(self.connection, self.grab)
        if self.grab.known:
            duplicates += replace(self.connection, self.grab)
        write_channel_history(self.connection, self.grab)
        stored, rejected = self.connection.execute(
            """
            SELECT (SELECT count(programme_id) FROM programmes WHERE feed_id = $feed_id),
                   (SELECT count(line) FROM rejects WHERE feed_id = $feed_id)
            """,
            {"feed_id": self.grab.feed_id},
        ).fetchall()[0]
        self.counts = Counts(seen=self.staged + self.rejected, stored=stored, duplicates=duplicates, rejected=rejected)
        if self.counts.seen != stored + duplicates + rejected:
            raise LedgerError(
                f"{self.grab.source}: {self.counts.seen:,} programmes were seen, but {stored:,} stored + "
                f"{duplicates:,} duplicates + {rejected:,} rejected are {stored + duplicates + rejected:,}: DuckDB "
                f"{duckdb.__version__} has lost rows. Nothing of this feed was stored; `guidespace doctor` checks the version"
            )
        return self.counts

    @property
    def _names(self) -> dict[str, object]:
        return {"feed_id": self.grab.feed_id, "source": self.grab.source}

    def _insert(self, into: str, rows: Rows, values: dict[str, object]) -> None:
        """INSERT INTO … FROM a batch, which DuckDB finds by the name of the variable; a registered one it would hold until the commit."""
        arriving = rows  # noqa: F841
        self.connection.execute(f"INSERT INTO {into} FROM arriving", values)


def has_read(catalogue: Catalogue, source: str, content_digest: str, grabbed_at: datetime.datetime | None = None, zone: str = "") -> Counts | None:
    """The counts of the earlier reading that makes this one needless, or None.

    Args:
        grabbed_at: Of a guide with a date of its own: an earlier reading of these bytes with that date. None: the bytes
            are what the source says now, and needless only if they are what it said last.
        zone: Of times that name none. Read in another one, the bytes say something else.
    """
    rows = catalogue.connection.execute(
        f"""
        SELECT content_digest, grabbed_at, zone, seen, stored, duplicates, rejected
        FROM feeds
        WHERE source = ? AND NOT {LOST}
        ORDER BY feeds.grabbed_at DESC, feed_id DESC
        """,
        [source],
    ).fetchall()
    same = [row for row in (rows[:1] if grabbed_at is None else rows) if row[0] == content_digest and grabbed_at in (None, row[1].replace(tzinfo=datetime.UTC))]
    return Counts(seen=same[0][3], stored=same[0][4], duplicates=same[0][5], rejected=same[0][6]) if same and same[0][2] == zone else None


@contextmanager
def reading(
    catalogue: Catalogue,
    *,
    source: str,
    content_digest: str,
    size: int,
    read_at: datetime.datetime,
    grabbed_at: datetime.datetime | None = None,
    zone: str = "",
) -> Iterator[Reading]:
    """One feed, one transaction: all of it is there after the block, or nothing when the block raises (or dies).

    Args:
        size: Bytes as stored.
        read_at: With a time zone; kept in UTC.
        grabbed_at: When the feed said it; None is ``read_at``.
        zone: Of times that name none.
    """
    connection = catalogue.connection
    connection.begin()
    try:
        feed_id, next_id, known = connection.execute(
            """
            SELECT (SELECT coalesce(max(feed_id), 0) + 1 FROM feeds),
                   (SELECT coalesce(max(programme_id), 0) + 1 FROM programmes),
                   (SELECT count(*) > 0 FROM feeds WHERE source = $source)
            """,
            {"source": source},
        ).fetchall()[0]
        grab = Grab(feed_id=feed_id, source=source, content_digest=content_digest, at=_utc(grabbed_at or read_at), known=known)
        for table in TABLES if known else ():
            connection.execute(f"CREATE OR REPLACE TEMP TABLE staged_{table} AS FROM {table} LIMIT 0")
        connection.execute("CREATE OR REPLACE TEMP TABLE arrived AS SELECT * EXCLUDE (feed_id, source) FROM channel_history LIMIT 0")
        draft = Reading(connection, grab, next_id)
        yield draft
        counts = draft.counts or draft.settle()
        connection.execute(
            "INSERT INTO feeds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [feed_id, source, content_digest, size, _utc(read_at), grab.at, counts.seen, counts.stored, counts.duplicates, counts.rejected, zone],
        )
        connection.commit()
    except BaseException:
        with suppress(duckdb.TransactionException):  # a commit that fails has ended it: what is told is why
            connection.rollback()
        raise
    finally:
        for table in ("arrived", *(f"staged_{table}" for table in TABLES)):
            connection.execute(f"DROP TABLE IF EXISTS temp.{table}")


def _utc(moment: datetime.datetime) -> datetime.datetime:
    """UTC without a zone, as the catalogue keeps it."""
    return moment.astimezone(datetime.UTC).replace(tzinfo=None)
