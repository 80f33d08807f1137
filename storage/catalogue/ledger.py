"""The ledger of feeds: the only way to add a reading to the catalogue, in one transaction.

Programmes of a new source go straight into their table (a third faster than through a temporary one); those
of a known source wait in temporary tables until replacing.py has compared them with earlier readings.
"""

import datetime
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from storage.catalogue.connection import Catalogue, transaction
from storage.catalogue.episode_columns import COLUMNS, EpisodeReader
from storage.catalogue.feeds import Counts, utc
from storage.catalogue.open_ends import OpenEnds
from storage.catalogue.replacing import TABLES, Grab, drop_doubles, infer_stops, replace, write_windows
from storage.errors import ExpectedError


class LedgerError(ExpectedError):
    """The rows of a reading do not add up; nothing of it is kept."""

    exit_code = 1


@dataclass
class FeedRead:
    """A feed being read into the catalogue, inside its transaction."""

    connection: duckdb.DuckDBPyConnection
    grab: Grab
    next_id: int
    staged: int = 0
    channels: int = 0
    rejected: int = 0
    invalid_bytes: int = 0
    open_ends: OpenEnds = field(default_factory=OpenEnds)
    episodes: EpisodeReader = field(default_factory=EpisodeReader)
    reasons: Counter[str] = field(default_factory=Counter)
    counts: Counts | None = None

    def add_programmes(
        self,
        rows: pa.RecordBatch,
        details: pa.RecordBatch | None = None,
        originals: pa.RecordBatch | None = None,
    ) -> None:
        """Adds programmes (schema PROGRAMMES) in the feed's order.

        ``details`` are their other elements (DETAILS), ``originals`` their text before cleaning (ORIGINALS).
        """
        first, self.next_id = self.next_id, self.next_id + rows.num_rows
        ids = pa.array(np.arange(first, self.next_id))
        numbered = self.open_ends.fill(rows).append_column("programme_id", ids)
        for name, column in zip(COLUMNS, self.episodes.columns(rows), strict=True):
            numbered = numbered.append_column(name, column)
        columns = "programme_id, $feed_id, NULL, $source, * EXCLUDE (programme_id)"
        names = {"feed_id": self.grab.feed_id, "source": self.grab.source}
        self._insert(f"{self.grab.prefix}programmes SELECT {columns}", numbered, names)
        for name, further in (("details", details), ("originals", originals)):
            if further is not None and further.num_rows:
                into = f"{self.grab.prefix}{name} SELECT row + $first, * EXCLUDE (row)"
                self._insert(into, further, {"first": first})
        self.staged += rows.num_rows

    def add_channels(self, rows: pa.RecordBatch) -> None:
        """Adds channels (schema CHANNELS); of several rows of one channel the first counts."""
        self._insert("arrived SELECT *", rows, {})
        self.channels += rows.num_rows

    def add_root(self, rows: pa.RecordBatch) -> None:
        """Adds attributes (schema ROOT) of the feed's root."""
        into = "feed_attributes SELECT $feed_id, attribute, value"
        self._insert(into, rows, {"feed_id": self.grab.feed_id})

    def add_rejects(self, rows: pa.RecordBatch) -> None:
        """Adds elements that could not be read (schema REJECTS); each counts as one programme seen."""
        self._insert("rejects SELECT $feed_id, line, reason, excerpt", rows, {"feed_id": self.grab.feed_id})
        self.rejected += rows.num_rows
        self.reasons.update(rows.column("reason").to_pylist())

    def settle(self) -> Counts:
        """Removes duplicates, infers stops, and replaces what earlier readings say of these windows.

        Raises:
            LedgerError: Rows stored, duplicate and rejected, each counted, are not as many as were seen.
        """
        grab, seen = self.grab, self.staged + self.rejected
        if self.open_ends.count:
            infer_stops(self.connection, grab, self.open_ends)
        duplicates = drop_doubles(self.connection, grab, self.staged)
        write_windows(self.connection, grab)
        if grab.known:
            duplicates += replace(self.connection, grab)
        _write_channels(self.connection, grab)
        query = """
            SELECT (SELECT count(programme_id) FROM programmes WHERE feed_id = $feed_id),
                   (SELECT count(line) FROM rejects WHERE feed_id = $feed_id)
        """
        stored, rejected = self.connection.execute(query, {"feed_id": grab.feed_id}).fetchall()[0]
        if seen != (total := stored + duplicates + rejected):
            raise LedgerError(
                f"{grab.source}: {seen:,} programmes were seen, but {stored:,} stored + {duplicates:,} "
                f"duplicates + {rejected:,} rejected are {total:,}: DuckDB {duckdb.__version__} has lost "
                "rows. Nothing of this feed was stored; `guidespace doctor` checks the version"
            )
        self.counts = Counts(seen, stored, duplicates, rejected, self.invalid_bytes)
        return self.counts

    def _insert(self, into: str, rows: pa.RecordBatch | pa.Table, values: dict[str, Any]) -> None:
        arriving = rows  # noqa: F841  (found by its name: a registered batch DuckDB would hold until the commit)
        self.connection.execute(f"INSERT INTO {into} FROM arriving", values)


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
) -> Iterator[FeedRead]:
    """One feed, one transaction: all of it is stored after the block, or nothing if the block raises.

    ``size`` is in bytes as stored, ``zone`` that of times that name none. The guide was made at
    ``grabbed_at`` (None is ``read_at``); both have a time zone and are kept in UTC.
    """
    connection, at = catalogue.connection, utc(grabbed_at or read_at)
    try:
        with transaction(connection):
            query = """
                SELECT (SELECT coalesce(max(feed_id), 0) + 1 FROM feeds),
                       (SELECT coalesce(max(programme_id), 0) + 1 FROM programmes),
                       EXISTS (FROM feeds WHERE source = ?)
            """
            feed_id, next_id, known = connection.execute(query, [source]).fetchall()[0]
            empty = {f"staged_{table}": f"FROM {table}" for table in TABLES if known}
            empty["arrived"] = "SELECT * EXCLUDE (feed_id, source) FROM channel_history"
            for name, columns in empty.items():
                connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {columns} LIMIT 0")
            draft = FeedRead(connection, Grab(feed_id, source, content_digest, at, known), next_id)
            yield draft
            counts = draft.counts or draft.settle()
            *programmes, invalid_bytes = counts
            row = [feed_id, source, content_digest, size, utc(read_at), at, *programmes, zone, invalid_bytes]
            connection.execute(f"INSERT INTO feeds VALUES ({', '.join('?' * len(row))})", row)
    finally:
        for table in ("arrived", *(f"staged_{table}" for table in TABLES)):
            connection.execute(f"DROP TABLE IF EXISTS temp.{table}")


def _write_channels(connection: duckdb.DuckDBPyConnection, grab: Grab) -> None:
    """Records channels of ``arrived`` (the first row of each), and those only used, that have changed.

    The order of reading does not matter: a grab is compared with what was known when it was made. If it is
    read late, the next newer grab gets a row for what that repeats of the older description.
    """
    feed, source = {"feed_id": grab.feed_id, "source": grab.source}, {"source": grab.source, "at": grab.at}
    query = """
        CREATE OR REPLACE TEMP TABLE before AS
        SELECT channel, name, names, icon, lcn, urls, extra
        FROM channel_history
        JOIN feeds USING (feed_id, source)
        WHERE source = $source AND grabbed_at <= $at
        QUALIFY row_number() OVER (PARTITION BY channel ORDER BY grabbed_at DESC, feed_id DESC) = 1
    """
    connection.execute(query, source)
    query = """
        INSERT INTO channel_history
        SELECT $feed_id, $source, arrived.*
        FROM (FROM arrived QUALIFY row_number() OVER (PARTITION BY channel ORDER BY rowid) = 1) AS arrived
        LEFT JOIN before USING (channel)
        WHERE arrived IS DISTINCT FROM before
    """
    connection.execute(query, feed)
    query = """
        INSERT INTO channel_history
        SELECT $feed_id, $source, channel, channel, [channel], NULL, NULL, [], NULL
        FROM windows
        WHERE feed_id = $feed_id
          AND channel NOT IN (SELECT channel FROM before UNION ALL SELECT channel FROM arrived)
    """
    connection.execute(query, feed)
    if grab.known:  # the first newer grab with programmes had repeated what this one changes
        query = """
            INSERT INTO channel_history
            SELECT newer.feed_id, $source, before.*
            FROM before
            JOIN (SELECT channel FROM channel_history WHERE feed_id = $feed_id) AS changed USING (channel)
            JOIN (
                SELECT channel, arg_min(feed_id, (grabbed_at, feed_id)) AS feed_id, min(grabbed_at) AS at
                FROM windows
                JOIN feeds USING (feed_id)
                WHERE source = $source AND grabbed_at > $at
                GROUP BY channel
            ) AS newer USING (channel)
            WHERE before.names <> [channel]
              AND NOT EXISTS (
                FROM channel_history AS own
                JOIN feeds USING (feed_id, source)
                WHERE source = $source AND own.channel = before.channel
                  AND feeds.grabbed_at > $at AND feeds.grabbed_at <= newer.at
              )
        """
        connection.execute(query, feed | source)
    connection.execute("DROP TABLE temp.before")
