"""Writes the programmes of one feed into the DuckDB catalogue in one transaction, and verifies their number.

At later imports of a feed, programmes are first written to temporary tables (``staged_*``), and replacing.py
compares them with the programmes of earlier imports. At the first import, programmes are inserted directly
into the tables of the catalogue, which is a third faster.
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
from storage.catalogue.episode_columns import EPISODE_COLUMNS, EpisodeReader
from storage.catalogue.feeds import Counts, to_naive_utc
from storage.catalogue.missing_stops import MissingStops, infer_stops
from storage.catalogue.replacing import (
    PROGRAMME_TABLES,
    Grab,
    drop_duplicates,
    replace_programmes,
    write_windows,
)
from storage.errors import ExpectedError


class LedgerError(ExpectedError):
    """Error: the numbers of stored, duplicate and rejected programmes do not add up. Nothing is stored."""

    exit_code = 1


@dataclass
class FeedWriter:
    """Writes one feed to the catalogue within the transaction of ``feed_writer``."""

    connection: duckdb.DuckDBPyConnection
    grab: Grab
    next_id: int  # programme_id of the next programme
    staged_count: int = 0  # number of programmes added so far
    channels: int = 0  # number of channels added so far
    rejected: int = 0  # number of elements that could not be read
    invalid_bytes: int = 0  # number of bytes that could not be decoded
    missing_stops: MissingStops = field(default_factory=MissingStops)
    episodes: EpisodeReader = field(default_factory=EpisodeReader)
    reasons: Counter[str] = field(default_factory=Counter)  # number of rejected elements by reason
    counts: Counts | None = None  # None until ``finish``

    def add_programmes(
        self,
        rows: pa.RecordBatch,
        details: pa.RecordBatch | None = None,
        originals: pa.RecordBatch | None = None,
    ) -> None:
        """Adds a batch of programmes; batches must be added in the order of the feed.

        Args:
            rows: Programmes (schema PROGRAMMES of rows.py).
            details: Other elements of these programmes (schema DETAILS).
            originals: Texts of these programmes before cleaning (schema ORIGINALS).
        """
        first_id, self.next_id = self.next_id, self.next_id + rows.num_rows
        ids = pa.array(np.arange(first_id, self.next_id))
        numbered_rows = self.missing_stops.fill(rows).append_column("programme_id", ids)
        for name, column in zip(EPISODE_COLUMNS, self.episodes.columns(rows), strict=True):
            numbered_rows = numbered_rows.append_column(name, column)
        columns = "programme_id, $feed_id, NULL, $source, * EXCLUDE (programme_id)"
        parameters = {"feed_id": self.grab.feed_id, "source": self.grab.source}
        self._insert(f"{self.grab.prefix}programmes SELECT {columns}", numbered_rows, parameters)
        for table, batch in (("details", details), ("originals", originals)):
            if batch is not None and batch.num_rows:
                target = f"{self.grab.prefix}{table} SELECT row + $first, * EXCLUDE (row)"
                self._insert(target, batch, {"first": first_id})
        self.staged_count += rows.num_rows

    def add_channels(self, rows: pa.RecordBatch) -> None:
        """Adds channels (schema CHANNELS of rows.py). Of several rows of a channel, the first is used."""
        self._insert("feed_channels SELECT *", rows, {})
        self.channels += rows.num_rows

    def add_root(self, rows: pa.RecordBatch) -> None:
        """Adds attributes of the root element of the XMLTV file (schema ROOT of rows.py)."""
        target = "feed_attributes SELECT $feed_id, attribute, value"
        self._insert(target, rows, {"feed_id": self.grab.feed_id})

    def add_rejects(self, rows: pa.RecordBatch) -> None:
        """Adds elements that could not be read (schema REJECTS of rows.py), which count as programmes."""
        self._insert("rejects SELECT $feed_id, line, reason, excerpt", rows, {"feed_id": self.grab.feed_id})
        self.rejected += rows.num_rows
        self.reasons.update(rows.column("reason").to_pylist())

    def finish(self) -> Counts:
        """Infers missing ends, removes duplicates, and replaces programmes of earlier imports of the feed.

        Raises:
            LedgerError: Stored, duplicate and rejected programmes do not add up to all programmes.
        """
        grab, seen_count = self.grab, self.staged_count + self.rejected
        if self.missing_stops.count:
            infer_stops(self.connection, grab, self.missing_stops)
        duplicates = drop_duplicates(self.connection, grab, self.staged_count)
        write_windows(self.connection, grab)
        if grab.is_update:
            duplicates += replace_programmes(self.connection, grab)
        _store_channels(self.connection, grab)
        query = """
            SELECT (SELECT count(programme_id) FROM programmes WHERE feed_id = $feed_id),
                   (SELECT count(line) FROM rejects WHERE feed_id = $feed_id)
        """
        stored, rejected = self.connection.execute(query, {"feed_id": grab.feed_id}).fetchall()[0]
        if seen_count != (total := stored + duplicates + rejected):
            raise LedgerError(
                f"{grab.source}: {seen_count:,} programmes were seen, but {stored:,} stored + {duplicates:,} "
                f"duplicates + {rejected:,} rejected are {total:,}. This feed was not stored. Please report "
                f"this with the version of DuckDB ({duckdb.__version__})"
            )
        self.counts = Counts(seen_count, stored, duplicates, rejected, self.invalid_bytes)
        return self.counts

    def _insert(self, target: str, rows: pa.RecordBatch | pa.Table, parameters: dict[str, Any]) -> None:
        """Executes ``INSERT INTO {target} FROM rows``.

        ``target`` is a table name followed by a SELECT clause; ``parameters`` has the values of its ``$name``
        query parameters.
        """
        # the SQL reads the local variable ``rows``; DuckDB would keep a registered table until the commit
        self.connection.execute(f"INSERT INTO {target} FROM rows", parameters)


@contextmanager
def feed_writer(
    catalogue: Catalogue,
    *,
    source: str,
    content_digest: str,
    size: int,
    read_at: datetime.datetime,
    grabbed_at: datetime.datetime | None = None,
    zone: str = "",
) -> Iterator[FeedWriter]:
    """Yields a writer for one feed in a transaction, which is rolled back if the block raises.

    Args:
        catalogue: The open catalogue.
        source: Name of the feed, such as its URL without secrets.
        content_digest: SHA-256 of the feed.
        size: Size of the feed in bytes.
        read_at: Time of the import, a datetime with a time zone.
        grabbed_at: Instant of a dated guide, a datetime with a time zone; None if it equals ``read_at``.
        zone: Name of the time zone of times in the feed that state none.
    """
    connection, grabbed_at = catalogue.connection, to_naive_utc(grabbed_at or read_at)
    try:
        with transaction(connection):
            query = """
                SELECT (SELECT coalesce(max(feed_id), 0) + 1 FROM feeds),
                       (SELECT coalesce(max(programme_id), 0) + 1 FROM programmes),
                       EXISTS (FROM feeds WHERE source = ?)
            """
            feed_id, next_id, is_update = connection.execute(query, [source]).fetchall()[0]
            table_queries = {f"staged_{table}": f"FROM {table}" for table in PROGRAMME_TABLES if is_update}
            table_queries["feed_channels"] = "SELECT * EXCLUDE (feed_id, source) FROM channel_history"
            for table, table_query in table_queries.items():
                connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {table_query} LIMIT 0")
            grab = Grab(feed_id, source, content_digest, grabbed_at, is_update)
            writer = FeedWriter(connection, grab, next_id)
            yield writer
            counts = writer.counts or writer.finish()
            row = [feed_id, source, content_digest, size, to_naive_utc(read_at), grabbed_at]
            row += [*counts[:4], zone, counts.invalid_bytes]
            connection.execute(f"INSERT INTO feeds VALUES ({', '.join('?' * len(row))})", row)
    finally:
        for table in ("feed_channels", *(f"staged_{table}" for table in PROGRAMME_TABLES)):
            connection.execute(f"DROP TABLE IF EXISTS temp.{table}")


def _store_channels(connection: duckdb.DuckDBPyConnection, grab: Grab) -> None:
    """Stores the names and other data of channels that are new or have changed.

    A channel is also stored if only programmes mention it. A grab is one version of a feed; the order in
    which grabs are imported does not change the result. The data of a channel are stored if they differ from
    those in the previous grab. If a grab is imported late and changes the data of a channel, the next newer
    grab may repeat the previous data, which were not stored for it. They are then stored for it now.
    """
    feed_values = {"feed_id": grab.feed_id, "source": grab.source}
    source_values = {"source": grab.source, "at": grab.grabbed_at}
    query = """
        CREATE OR REPLACE TEMP TABLE previous AS
        SELECT channel, name, names, icon, lcn, urls, extra
        FROM channel_history
        JOIN feeds USING (feed_id, source)
        WHERE source = $source AND grabbed_at <= $at
        QUALIFY row_number() OVER (PARTITION BY channel ORDER BY grabbed_at DESC, feed_id DESC) = 1
    """
    connection.execute(query, source_values)
    query = """
        INSERT INTO channel_history
        SELECT $feed_id, $source, new.*
        FROM (FROM feed_channels QUALIFY row_number() OVER (PARTITION BY channel ORDER BY rowid) = 1) AS new
        LEFT JOIN previous USING (channel)
        WHERE new IS DISTINCT FROM previous
    """
    connection.execute(query, feed_values)
    query = """
        INSERT INTO channel_history
        SELECT $feed_id, $source, channel, channel, [channel], NULL, NULL, [], NULL
        FROM windows
        WHERE feed_id = $feed_id
          AND channel NOT IN (SELECT channel FROM previous UNION ALL SELECT channel FROM feed_channels)
    """
    connection.execute(query, feed_values)
    if grab.is_update:  # stores the previous data for the next grab that covers the channel
        query = """
            INSERT INTO channel_history
            SELECT newer.feed_id, $source, previous.*
            FROM previous
            JOIN (SELECT channel FROM channel_history WHERE feed_id = $feed_id) AS changed USING (channel)
            JOIN (
                SELECT channel, arg_min(feed_id, (grabbed_at, feed_id)) AS feed_id, min(grabbed_at) AS at
                FROM windows
                JOIN feeds USING (feed_id)
                WHERE source = $source AND grabbed_at > $at
                GROUP BY channel
            ) AS newer USING (channel)
            WHERE previous.names <> [channel]
              AND NOT EXISTS (
                FROM channel_history AS history
                JOIN feeds USING (feed_id, source)
                WHERE source = $source AND history.channel = previous.channel
                  AND feeds.grabbed_at > $at AND feeds.grabbed_at <= newer.at
              )
        """
        connection.execute(query, feed_values | source_values)
    connection.execute("DROP TABLE temp.previous")
