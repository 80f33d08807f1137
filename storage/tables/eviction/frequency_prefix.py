"""Eviction policy that always caches the first rows and, of the others, the most recently used."""

from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch import Tensor

from storage.tables.eviction.slot_order import NO_STEP

RECENT_SHARE = 0.1  # minimum share of recent slots; the hit rate is at most one point below the best split


@dataclass(frozen=True, kw_only=True)
class FrequencyPrefix:
    """Caches the rows with the lowest ids permanently. For ids in the order of descending frequency.

    At least a tenth of the cache is for other rows, of which the least recently used is evicted first.
    """

    name: Literal["frequency_prefix"] = "frequency_prefix"

    def recent(self, slots: int, lookahead: int, batch: Tensor | None) -> int:
        """Returns the number of slots whose rows may be evicted, given the ids of a typical batch."""
        return recent_slots(slots, lookahead, batch)

    def order(self, rows: int, slots: int, lookahead: int) -> "LeastRecentlyUsed":
        """Returns the order in which slots are reused."""
        return LeastRecentlyUsed(slots)


class LeastRecentlyUsed:
    """Slots in the order of the last batch that used them."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        # batches and the slots that they used, oldest first
        self._queue = deque([(NO_STEP, np.arange(slots, dtype=np.int64))])
        self.queued = slots

    def victims(self, count: int, batch: int, slot_rows: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Returns ``count`` slots to reuse, least recently used first, and removes them from the queue."""
        chosen = [np.zeros(0, dtype=np.int64)]
        while count:
            used_by, slots = self._queue.popleft()
            current = slots[last[slots] == used_by]  # the others were used again later
            chosen.append(current[:count])
            if len(current) > count:
                self._queue.appendleft((used_by, current[count:]))
            self.queued += max(0, len(current) - count) - len(slots)
            count -= len(chosen[-1])
        return np.concatenate(chosen)

    def record(self, batch: int, rows: np.ndarray, slots: np.ndarray, last: np.ndarray) -> None:
        """Marks ``slots`` as used by the planned batch with the number ``batch``."""
        self._queue.append((batch, slots))
        self.queued += len(slots)
        if self.queued > 4 * self._slots + 1024:  # drops entries of slots that were used again later
            self._queue = deque((number, queued[last[queued] == number]) for number, queued in self._queue)
            self.queued = sum(len(queued) for _, queued in self._queue)


def recent_slots(slots: int, lookahead: int, batch: Tensor | None) -> int:
    """Returns the number of recent slots: the share RECENT_SHARE, or more if prefetching needs more.

    The rows of a slot that is not recent are never evicted; all other rows are called cold. While a step
    runs, the rows of the next ``lookahead`` batches replace rows of finished steps, so prefetching needs
    (lookahead + 2) times as many recent slots as a batch has cold rows. The number of cold rows grows with
    the number of recent slots, so it is computed in a loop. If there are too few slots, all are recent.
    """
    recent, minimum = 0, max(1, int(slots * RECENT_SHARE))
    while recent < minimum:
        recent = min(minimum, slots)
        cold = 0 if batch is None else int((batch >= slots - recent).sum())
        minimum = min((lookahead + 2) * cold, slots)
    return recent
