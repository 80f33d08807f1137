"""Eviction policy that evicts the least frequently used rows. Ids may be in any order."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class LeastFrequentlyUsed:
    """Counts the batches that use each row, and evicts the rows with the lowest counts.

    The counts take four bytes of host memory per row. The time to plan a batch is proportional to the number
    of slots.
    """

    name: Literal["least_frequently_used"] = "least_frequently_used"

    def recent(self, slots: int, lookahead: int, batch: Tensor | None) -> int:
        """Returns ``slots``, because the rows of all slots may be evicted."""
        return slots

    def order(self, rows: int, slots: int, lookahead: int) -> "LeastFrequent":
        """Returns the order in which the slots are reused."""
        return LeastFrequent(rows, lookahead)


class LeastFrequent:
    """Reuses first the slots whose rows the fewest batches have used; of these, the least recently used.

    Slots that the last ``lookahead`` + 1 batches used come last. If such a slot is reused, the transfer has
    to wait for a step instead of overlapping with the step.
    """

    def __init__(self, rows: int, lookahead: int) -> None:
        self._uses = np.zeros(rows, dtype=np.uint32)
        self._lookahead = lookahead

    def victims(self, count: int, batch: int, slot_rows: np.ndarray, last_batches: np.ndarray) -> np.ndarray:
        """Returns ``count`` slots to reuse: those whose rows the fewest batches have used."""
        if not count:
            return np.zeros(0, dtype=np.int64)
        uses = np.where(slot_rows < 0, 0, self._uses[slot_rows]).astype(np.int64)
        sort_keys = (uses << 31) + last_batches + 1
        sort_keys[last_batches > batch - self._lookahead - 2] += 1 << 62
        sort_keys[last_batches == batch] = np.iinfo(np.int64).max
        return np.argpartition(sort_keys, count - 1)[:count]

    def record(self, batch: int, rows: np.ndarray, slots: np.ndarray, last_batches: np.ndarray) -> None:
        """Adds one to the count of each row in ``rows``."""
        self._uses[rows] += 1
