"""Stores the times and the channels of the airings of titles as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from storage.arrays import Ragged
from storage.name_lists import NameLists


@dataclass(frozen=True, eq=False)
class AiringTimes:
    """Airings of each title in ascending order of time. Row i of both fields belongs to title i."""

    minutes: Ragged  # int64, start times in minutes since 1970-01-01 UTC
    channels: NameLists  # name of the channel of each airing, in the order of ``minutes``

    @staticmethod
    def from_table(table: pa.Table) -> AiringTimes:
        """Converts a table with the list columns "minutes" and "names" (of channels); both have no nulls."""
        channels = NameLists.from_column(table["names"])
        values = [chunk.flatten().to_numpy() for chunk in table["minutes"].chunks]
        minutes = np.concatenate([np.zeros(0, dtype=np.int64), *values])
        return AiringTimes(Ragged(channels.rows.offsets, minutes), channels)

    @staticmethod
    def from_rows(rows: Sequence[Sequence[tuple[int, str]]]) -> AiringTimes:
        """Converts lists of pairs (minute, channel), one list per title."""
        minutes = Ragged.from_rows([[minute for minute, _ in row] for row in rows], dtype=np.int64)
        return AiringTimes(minutes, NameLists.from_rows([channel for _, channel in row] for row in rows))

    def __len__(self) -> int:
        return len(self.minutes)
