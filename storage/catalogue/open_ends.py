"""Stops that a feed does not give: the next start on the channel, found while the feed is read.

Most feeds list a channel's programmes in order, so that a batch holds all but one of the answers a channel and the next
batch the last one. Those few are put right at the end. Where a feed goes back in time, replacing.py looks along whole
channels instead, which takes memory for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DAY = 24 * 3600 * 1_000_000  # microseconds


@dataclass
class OpenEnds:
    """What is known of the starts read so far.

    Attributes:
        count: Programmes without a stop.
        ordered: Whether each batch begins, on every channel, after the ones before it.
        latest: A channel's last start so far.
        bounds: (channel, its last start in a batch, its first one in a later batch).
    """

    count: int = 0
    ordered: bool = True
    latest: dict[str, int] = field(default_factory=dict)
    bounds: list[tuple[str, int, int]] = field(default_factory=list)

    def fill(self, rows: Any) -> Any:
        """A batch (or table) of programmes with the stops that it can tell itself."""
        encoded = _whole(rows.column("channel")).dictionary_encode()
        channels, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        starts = _whole(rows.column("start")).cast(pa.int64()).to_numpy()
        order = np.lexsort((starts, codes))
        codes, sorted_starts = codes[order], starts[order]
        if not len(order):
            return rows
        begins = np.flatnonzero(np.concatenate([[True], (codes[1:] != codes[:-1]) | (sorted_starts[1:] != sorted_starts[:-1])]))  # of each start on a channel
        following = np.append(sorted_starts[begins[1:]], 0)
        has_following = np.append(codes[begins[1:]] == codes[begins[:-1]], False)
        self._note(channels, codes[begins], sorted_starts[begins], has_following)
        stops = rows.column("stop")
        if not stops.null_count:
            return rows
        self.count += stops.null_count
        place = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(order))))
        found, known = np.zeros(len(order), np.int64), np.zeros(len(order), bool)
        found[order], known[order] = following[place], has_following[place]
        known &= found - starts <= DAY
        inferred = pa.array(found, pa.int64(), mask=~known).cast(pa.timestamp("us"))
        told = pc.coalesce(_whole(stops), inferred)  # pyright: ignore[reportAttributeAccessIssue]  (made at import)
        return rows.set_column(rows.schema.get_field_index("stop"), "stop", told)

    def _note(self, channels: list[str], codes: np.ndarray, starts: np.ndarray, has_following: np.ndarray) -> None:
        """Notes where each channel begins and ends in this batch."""
        first = np.flatnonzero(np.concatenate([[True], ~has_following[:-1]]))
        for code, begin, end in zip(codes[first].tolist(), starts[first].tolist(), starts[~has_following].tolist()):
            before = self.latest.get(channels[code])
            if before is not None:
                self.ordered &= begin > before
                self.bounds.append((channels[code], before, begin))
            self.latest[channels[code]] = end


def _whole(column: Any) -> Any:
    """A column of a table as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
