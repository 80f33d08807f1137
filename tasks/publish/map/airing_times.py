"""When and where the titles of a map air, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from storage.arrays import Ragged
from storage.name_lists import NameLists


@dataclass(frozen=True, eq=False)
class AiringTimes:
    """The airings of each title, rising: the minute since 1970 UTC, and the channel."""

    minutes: Ragged
    channels: NameLists  # of the same lengths

    @staticmethod
    def of(table: pa.Table) -> AiringTimes:
        """The rows of a table of lists, minutes and names; neither is null."""
        channels = NameLists.from_column(table["names"])
        values = [chunk.flatten().to_numpy() for chunk in table["minutes"].chunks]
        minutes = np.concatenate([np.zeros(0, dtype=np.int64), *values])
        return AiringTimes(Ragged(channels.rows.offsets, minutes), channels)

    @staticmethod
    def from_rows(rows: Sequence[Sequence[tuple[int, str]]]) -> AiringTimes:
        """Of a list of pairs a title."""
        minutes = Ragged.from_rows([[minute for minute, _ in row] for row in rows], dtype=np.int64)
        return AiringTimes(minutes, NameLists.from_rows([channel for _, channel in row] for row in rows))

    def __len__(self) -> int:
        return len(self.minutes)
