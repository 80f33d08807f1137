"""Which row lives in which slot, decided batch by batch, ahead of the steps.

Ids are sorted by falling frequency, so the first ``hot`` rows have a slot for good (slot = id) and need no directory.
The rest share ``recent`` slots; when they are full, the rows that were used longest ago leave. A plan is a function of
the batches alone, never of time, so a run repeats itself move by move.

Plans are carried out in their order. What makes that exact (an invariant of storage/tables/conveyor.py too):

* A row that leaves was last touched by batch ``after`` or before: the move waits until that step is written back.
* A row of a batch in flight is in its slot and is found there: it is never read from the host a second time.
* A row that left is read again only by a later plan, behind the write.
* Rows that find no slot (a batch larger than the part of the cache that may change) are used directly from the host by
  their step; every later plan waits for that step, since it may want the same rows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

NEVER = -1


@dataclass(frozen=True)
class Plan:
    """What is to be moved before a batch's step, and where the step finds its rows.

    Attributes:
        number: Of the batch, counted over the life of the table.
        ids: int64 (unique,): rows of the batch.
        slots: int64 (unique,): slot of each; of those used directly, 0.
        direct: int64 (any,): positions in ``ids`` of rows that have no slot.
        leave_ids, leave_slots: int64: rows to be written to the host, and where they are.
        enter_ids, enter_slots: int64: rows to be read from the host, and where to.
        after: Number of the last step that must be written back before anything is moved; NEVER: none.
    """

    number: int
    ids: np.ndarray
    slots: np.ndarray
    direct: np.ndarray
    leave_ids: np.ndarray
    leave_slots: np.ndarray
    enter_ids: np.ndarray
    enter_slots: np.ndarray
    after: int


class Planner:
    """The directory of a cache of ``hot + recent`` slots.

    Args:
        rows: Of the table.
        hot: Rows that are always cached: ids below it.
        recent: Slots for all others.
    """

    def __init__(self, rows: int, hot: int, recent: int) -> None:
        self.hot, self.recent = hot, recent
        self._slot = np.full(rows - hot, -1, dtype=np.int32)  # of each row that is not hot; -1: on the host
        self._id = np.full(recent, -1, dtype=np.int64)  # of the row in each changing slot; -1: none yet
        self._last = np.full(recent, NEVER, dtype=np.int64)  # batch that used it last
        self._queue: deque[tuple[int, np.ndarray]] = deque([(NEVER, np.arange(recent, dtype=np.int64))])  # oldest use first
        self._queued = recent
        self._number = 0
        self._last_direct = NEVER

    def plan(self, ids: np.ndarray) -> Plan:
        """Plans the next batch.

        Args:
            ids: int64 (unique,), distinct.
        """
        number, self._number = self._number, self._number + 1
        cold = np.flatnonzero(ids >= self.hot)
        where = self._slot[ids[cold] - self.hot].astype(np.int64)
        found = where >= 0
        self._last[where[found]] = number  # none of these may leave for this batch
        missing = cold[~found]
        free = self._oldest(min(len(missing), self.recent - int(found.sum())), number)
        enter, direct = missing[: len(free)], missing[len(free) :]
        leaving = free[self._id[free] >= 0]
        leave_ids = self._id[leaving]
        # Reading a direct row must see what earlier plans wrote, and every later plan what this step writes.
        after = max(int(self._last[leaving].max(initial=NEVER)), self._last_direct)
        self._slot[leave_ids - self.hot] = -1
        self._slot[ids[enter] - self.hot] = free
        self._id[free] = ids[enter]
        self._last[free] = number
        slots = ids.copy()
        slots[cold[found]] = where[found] + self.hot
        slots[enter] = free + self.hot
        slots[direct] = 0
        self._use(number, np.concatenate([where[found], free]))
        if len(direct):
            self._last_direct = number
        return Plan(number, ids, slots, direct, leave_ids, leaving + self.hot, ids[enter], free + self.hot, after)

    def locate(self, ids: np.ndarray) -> np.ndarray:
        """Slot of each row, -1 for those on the host: int64 (any,)."""
        slots = ids.copy()
        cold = np.flatnonzero(ids >= self.hot)
        where = self._slot[ids[cold] - self.hot].astype(np.int64)
        slots[cold] = np.where(where < 0, -1, where + self.hot)
        return slots

    def _use(self, number: int, slots: np.ndarray) -> None:
        self._queue.append((number, slots))
        self._queued += len(slots)
        if self._queued > 4 * self.recent + 1024:  # entries of slots used again since are dead: drop them
            self._queue = deque((used, slots[self._last[slots] == used]) for used, slots in self._queue)
            self._queued = sum(len(slots) for _, slots in self._queue)

    def _oldest(self, count: int, number: int) -> np.ndarray:
        """The ``count`` slots used longest ago, none of this batch; they leave the queue."""
        chosen: list[np.ndarray] = []
        while count:
            used, slots = self._queue.popleft()
            self._queued -= len(slots)
            alive = slots[self._last[slots] == used]
            chosen.append(alive[:count])
            if len(alive) > count:
                self._queue.appendleft((used, alive[count:]))
                self._queued += len(alive) - count
            count -= len(chosen[-1])
        return np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.int64)
