"""Infers the missing end (stop) of a programme from the start of the next programme on the same channel.

Most feeds list the programmes of a channel in order. The start of the next programme is then in the same
batch or, for the last programme of a channel, in a later batch. If a feed is not in order, replacing.py sorts
complete channels instead, which takes 1.8 GB for ten million programmes.
"""

import datetime
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DAY = np.timedelta64(1, "D")  # maximum duration of a programme with an inferred stop


@dataclass
class OpenEnds:
    """Infers missing stops of the programmes of a feed, batch by batch."""

    count: int = 0  # number of programmes without a stop so far
    is_ordered: bool = True  # whether each batch starts after all previous batches, on every channel
    last_starts: dict[str, datetime.datetime] = field(
        default_factory=dict
    )  # last start of each channel so far
    # (channel, last start in a batch, first start in the next batch with programmes of the channel)
    bounds: list[tuple[str, datetime.datetime, datetime.datetime]] = field(default_factory=list)

    def fill(self, rows: pa.RecordBatch) -> pa.Table:
        """Returns a batch of programmes with missing stops inferred from the starts within the batch.

        A stop that depends on the next batch remains missing, and is recorded in ``bounds``.
        """
        table = pa.Table.from_batches([rows])
        spans = table.group_by("channel").aggregate([("start", "min"), ("start", "max")]).to_pylist()
        for channel, begin, end in (tuple(span.values()) for span in spans):
            if previous := self.last_starts.get(channel):
                self.is_ordered &= begin > previous
                self.bounds.append((channel, previous, begin))
            self.last_starts[channel] = end
        if not table["stop"].null_count:
            return table
        self.count += table["stop"].null_count
        codes = table["channel"].combine_chunks().dictionary_encode().indices.to_numpy()
        starts = table["start"].to_numpy()
        order = np.lexsort((starts, codes))
        codes, sorted_starts = codes[order], starts[order]
        change_positions = 1 + np.flatnonzero(
            (np.diff(codes) != 0) | (np.diff(sorted_starts) != np.timedelta64(0))
        )
        next_positions = np.append(change_positions, 0)[
            np.searchsorted(change_positions, np.arange(len(order)), side="right")
        ]
        gaps = sorted_starts[next_positions] - sorted_starts
        within_day = (codes[next_positions] == codes) & (gaps > np.timedelta64(0)) & (gaps <= DAY)
        inferred_stops = np.full(len(order), np.datetime64("NaT"), "datetime64[us]")
        inferred_stops[order[within_day]] = sorted_starts[next_positions[within_day]]
        stops = pc.coalesce(table["stop"], pa.array(inferred_stops))  # pyright: ignore[reportAttributeAccessIssue]
        return table.set_column(table.schema.get_field_index("stop"), "stop", stops)
