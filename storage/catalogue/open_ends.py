"""Stops that a feed does not give: the next start on the channel, found while the feed is read.

Most feeds list a channel's programmes in order. Then a batch holds all but one of a channel's answers, and
the next batch the last one. Where a feed goes back in time, replacing.py looks along whole channels instead,
which takes memory for all of them (1.8 GB for ten million programmes).
"""

import datetime
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DAY = np.timedelta64(1, "D")


@dataclass
class OpenEnds:
    """The starts read so far."""

    count: int = 0  # programmes without a stop
    ordered: bool = True  # whether each batch begins, on every channel, after the ones before it
    latest: dict[str, datetime.datetime] = field(default_factory=dict)  # a channel's last start so far
    # (channel, its last start in a batch, its first one in a later batch)
    bounds: list[tuple[str, datetime.datetime, datetime.datetime]] = field(default_factory=list)

    def fill(self, rows: pa.RecordBatch) -> pa.Table:
        """A batch of programmes with the stops that follow from its own starts."""
        table = pa.Table.from_batches([rows])
        spans = table.group_by("channel").aggregate([("start", "min"), ("start", "max")]).to_pylist()
        for channel, begin, end in (tuple(span.values()) for span in spans):
            if before := self.latest.get(channel):
                self.ordered &= begin > before
                self.bounds.append((channel, before, begin))
            self.latest[channel] = end
        if not table["stop"].null_count:
            return table
        self.count += table["stop"].null_count
        codes = table["channel"].combine_chunks().dictionary_encode().indices.to_numpy()
        starts = table["start"].to_numpy()
        order = np.lexsort((starts, codes))
        codes, sorted_starts = codes[order], starts[order]
        changes = 1 + np.flatnonzero((np.diff(codes) != 0) | (np.diff(sorted_starts) != np.timedelta64(0)))
        later = np.append(changes, 0)[np.searchsorted(changes, np.arange(len(order)), side="right")]
        gaps = sorted_starts[later] - sorted_starts
        found = (codes[later] == codes) & (gaps > np.timedelta64(0)) & (gaps <= DAY)
        inferred = np.full(len(order), np.datetime64("NaT"), "datetime64[us]")
        inferred[order[found]] = sorted_starts[later[found]]
        stops = pc.coalesce(table["stop"], pa.array(inferred))  # pyright: ignore[reportAttributeAccessIssue]
        return table.set_column(table.schema.get_field_index("stop"), "stop", stops)
