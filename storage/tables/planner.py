"""Which row lives in which slot of the cache, planned batch by batch, ahead of the steps.

The first ``hot`` rows have a slot for good (slot = id); the rest share ``recent`` slots, from which the least
recently used leave. A plan depends on the batches alone, never on time, so a run repeats itself.

Plans are carried out in order. Invariants that make this exact (prefetch.py relies on them too):
* A row that leaves was last used by batch ``after`` or before: the move waits for that step's write-back.
* A row of a batch in flight is in its slot and is found there: it is never read from the host a second time.
* A row that left is read again only by a later plan, behind the write.
* Rows that find no slot are used directly from the host by their step. That batch has used every slot, so a
  later plan, which may want the same rows, waits for its step with the slots that it frees.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

NEVER = -1


@dataclass(frozen=True)
class CachePlan:
    """What to move before a batch's step, and where the step finds its rows; all arrays int64."""

    number: int  # of the batch, counted over the life of the table
    ids: np.ndarray  # rows of the batch, (unique,)
    slots: np.ndarray  # slot of each; 0 for those used directly
    direct: np.ndarray  # positions in ``ids`` of rows without a slot
    leave_ids: np.ndarray  # rows to write to the host
    leave_slots: np.ndarray
    enter_ids: np.ndarray  # rows to read from the host
    enter_slots: np.ndarray
    after: int  # last step that must be written back before anything is moved; NEVER: none


class Planner:
    """The directory of a cache of ``hot + recent`` slots for a table of ``rows`` rows."""

    def __init__(self, rows: int, hot: int, recent: int) -> None:
        self.hot, self.recent = hot, recent
        self._slot = np.full(rows - hot, -1, dtype=np.int32)  # of each row that is not hot; -1: on the host
        self._id = np.full(recent, -1, dtype=np.int64)  # of the row in each recent slot; -1: none yet
        self._last = np.full(recent, NEVER, dtype=np.int64)  # batch that used it last
        self._queue = deque([(NEVER, np.arange(recent, dtype=np.int64))])  # batch and its slots, oldest first
        self._queued = recent
        self._number = 0

    def plan(self, ids: np.ndarray) -> CachePlan:
        """Plans the next batch of distinct rows, int64 (unique,); ValueError for a row that comes twice."""
        check_distinct(ids)
        number, self._number = self._number, self._number + 1
        cold = np.flatnonzero(ids >= self.hot)
        where = self._slot[ids[cold] - self.hot].astype(np.int64)
        found = where >= 0
        self._last[where[found]] = number  # none of these may leave for this batch
        missing = cold[~found]
        free = self._oldest(min(len(missing), self.recent - int(found.sum())))
        enter, direct = missing[: len(free)], missing[len(free) :]
        leaving = free[self._id[free] >= 0]
        leave_ids = self._id[leaving]
        after = int(self._last[leaving].max(initial=NEVER))
        self._slot[leave_ids - self.hot] = -1
        self._slot[ids[enter] - self.hot] = free
        self._id[free] = ids[enter]
        self._last[free] = number
        slots = ids.copy()
        slots[cold[found]] = where[found] + self.hot
        slots[enter] = free + self.hot
        slots[direct] = 0
        used = np.concatenate([where[found], free])
        self._queue.append((number, used))
        self._queued += len(used)
        if self._queued > 4 * self.recent + 1024:  # entries of slots used again since are dead: drop them
            self._queue = deque((batch, some[self._last[some] == batch]) for batch, some in self._queue)
            self._queued = sum(len(some) for _, some in self._queue)
        moved = leave_ids, leaving + self.hot, ids[enter], free + self.hot
        return CachePlan(number, ids, slots, direct, *moved, after)

    def locate(self, ids: np.ndarray) -> np.ndarray:
        """Slot of each of distinct rows, -1 for those on the host: int64 (any,)."""
        check_distinct(ids)
        slots = ids.copy()
        cold = np.flatnonzero(ids >= self.hot)
        where = self._slot[ids[cold] - self.hot].astype(np.int64)
        slots[cold] = np.where(where < 0, -1, where + self.hot)
        return slots

    def _oldest(self, count: int) -> np.ndarray:
        """The ``count`` least recently used slots, none of this batch; they leave the queue."""
        chosen = [np.zeros(0, dtype=np.int64)]
        while count:
            used, slots = self._queue.popleft()
            alive = slots[self._last[slots] == used]
            chosen.append(alive[:count])
            if len(alive) > count:
                self._queue.appendleft((used, alive[count:]))
            self._queued += max(0, len(alive) - count) - len(slots)
            count -= len(chosen[-1])
        return np.concatenate(chosen)


def check_distinct(ids: np.ndarray) -> None:
    """ValueError for ids that come twice: of two updates of a row one would be lost."""
    if (ids[1:] > ids[:-1]).all():
        return
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < len(ids):
        twice = values[counts > 1][:5].tolist()
        raise ValueError(f"a batch names rows {twice} more than once; give `torch.unique` of its ids")
