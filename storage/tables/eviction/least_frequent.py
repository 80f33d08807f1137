"""Eviction policy that evicts the least frequently used rows, for ids in any order."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class LeastFrequentlyUsed:
    """Counts the batches that use each row, and evicts the rows with the lowest counts.

    Needs four bytes of host memory per row. The time of a plan is proportional to the number of slots.
    """

    name: Literal["least_frequently_used"] = "least_frequently_used"

    def recent(self, slots: int, lookahead: int, batch: Tensor | None) -> int:
        """Returns the number of slots whose rows may be evicted: all."""
        return slots

    def order(self, rows: int, slots: int, lookahead: int) -> "LeastFrequent":
        """Returns the order of the slots."""
        return LeastFrequent(rows, lookahead)


class LeastFrequent:
    """Reuses slots in the order of the counts of their rows, then of the last batch that used them.

    Slots that the last ``lookahead`` + 1 batches used come last: if such a slot is reused, the transfer has
    to wait for a step instead of overlapping with it.
    """

    def __init__(self, rows: int, lookahead: int) -> None:
        self._uses = np.zeros(rows, dtype=np.uint32)
        self._lookahead = lookahead

    def victims(self, count: int, batch: int, slot_rows: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Returns ``count`` slots to reuse: those whose rows the fewest batches have used."""
        if not count:
            return np.zeros(0, dtype=np.int64)
        uses = np.where(slot_rows < 0, 0, self._uses[slot_rows]).astype(np.int64)
        key = (uses << 31) + last + 1
        key[last > batch - self._lookahead - 2] += 1 << 62
        key[last == batch] = np.iinfo(np.int64).max
        return np.argpartition(key, count - 1)[:count]

    def record(self, batch: int, rows: np.ndarray, slots: np.ndarray, last: np.ndarray) -> None:
        """Counts one more use of each of ``rows``."""
        self._uses[rows] += 1
