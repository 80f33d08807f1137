"""Infers the missing end (stop) of a programme from the start of the next programme on the same channel.

Most feeds list the programmes of a channel in order. The start of the next programme is then in the same
batch or, for the last programme of a channel in a batch, in a later batch. If a feed is not in order,
``infer_stops`` sorts all its programmes by channel and start, which takes 1.8 GB for ten million programmes.
"""

import datetime
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage.catalogue.connection import set_memory_limit
from storage.catalogue.replacing import Grab

_NEXT_STARTS = pa.schema({"channel": pa.string(), "start": pa.timestamp("us"), "next": pa.timestamp("us")})
STOP_SEARCH_BYTES = 160  # approximate memory that DuckDB needs per programme without a stop
DAY = np.timedelta64(1, "D")  # maximum duration of a programme with an inferred stop


@dataclass
class MissingStops:
    """Infers missing stops of the programmes of a feed, batch by batch."""

    count: int = 0  # number of programmes without a stop so far
    is_ordered: bool = True  # whether, on every channel, each batch starts after all previous batches
    last_starts: dict[str, datetime.datetime] = field(default_factory=dict)  # last start so far, by channel
    # (channel, last start in a batch, first start in the next batch with programmes of the channel)
    bounds: list[tuple[str, datetime.datetime, datetime.datetime]] = field(default_factory=list)

    def fill(self, rows: pa.RecordBatch) -> pa.Table:
        """Returns a batch of programmes with missing stops inferred from the starts within the batch.

        The stop of the last programme of a channel stays missing. ``bounds`` gets the data to infer it later.
        """
        table = pa.Table.from_batches([rows])
        spans = table.group_by("channel").aggregate([("start", "min"), ("start", "max")]).to_pylist()
        for channel, first_start, last_start in (tuple(span.values()) for span in spans):
            if previous_start := self.last_starts.get(channel):
                self.is_ordered &= first_start > previous_start
                self.bounds.append((channel, previous_start, first_start))
            self.last_starts[channel] = last_start
        if not table["stop"].null_count:
            return table
        self.count += table["stop"].null_count
        channel_codes = table["channel"].combine_chunks().dictionary_encode().indices.to_numpy()
        starts = table["start"].to_numpy()
        order = np.lexsort((starts, channel_codes))
        sorted_codes, sorted_starts = channel_codes[order], starts[order]
        change_positions = 1 + np.flatnonzero(
            (np.diff(sorted_codes) != 0) | (np.diff(sorted_starts) != np.timedelta64(0))
        )
        next_positions = np.append(change_positions, 0)[
            np.searchsorted(change_positions, np.arange(len(order)), side="right")
        ]
        gaps = sorted_starts[next_positions] - sorted_starts
        is_same_channel = sorted_codes[next_positions] == sorted_codes
        has_next_start = is_same_channel & (gaps > np.timedelta64(0)) & (gaps <= DAY)
        inferred_stops = np.full(len(order), np.datetime64("NaT"), "datetime64[us]")
        inferred_stops[order[has_next_start]] = sorted_starts[next_positions[has_next_start]]
        stops = pc.coalesce(table["stop"], pa.array(inferred_stops))  # pyright: ignore[reportAttributeAccessIssue]
        return table.set_column(table.schema.get_field_index("stop"), "stop", stops)


def infer_stops(connection: duckdb.DuckDBPyConnection, grab: Grab, missing_stops: MissingStops) -> None:
    """Fills the stops that are still missing with the next start on the channel, if it is within a day."""
    table, bounds_table = f"{grab.prefix}programmes", "bounds"
    if missing_stops.is_ordered:
        bounds = pa.table(list(zip(*missing_stops.bounds)) or [[]] * 3, schema=_NEXT_STARTS)  # noqa: F841  (the SQL reads this local variable)
    else:  # until the commit, DuckDB keeps updated rows and sorted channels in memory
        set_memory_limit(connection, missing_stops.count * STOP_SEARCH_BYTES)
        bounds_table = f"""(
            SELECT channel, start, lead(start) OVER (PARTITION BY channel ORDER BY start) AS next
            FROM (SELECT DISTINCT channel, start FROM {table} WHERE feed_id = $feed_id)
        )"""
    query = f"""
        UPDATE {table} SET stop = following.next
        FROM {bounds_table} AS following
        WHERE feed_id = $feed_id AND stop_note IN ('missing', 'unreadable')
          AND following.channel = {table}.channel AND following.start = {table}.start
          AND following.next <= {table}.start + INTERVAL 1 DAY AND stop IS DISTINCT FROM following.next
    """
    connection.execute(query, {"feed_id": grab.feed_id})
