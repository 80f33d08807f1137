"""Assigns cache slots to rows, one batch at a time, before the steps run.

The first ``hot`` rows have permanent slots (slot = id). All other rows are called cold and share ``recent``
slots, which are reused in least-recently-used order. A plan depends on the batches but not on time, so runs
are reproducible.

Plans are executed in order. The result is exact because of these invariants, on which prefetch.py also
relies:

* The last step that used an evicted row is ``depends_on_step`` or earlier. The transfer waits for the
  write-back of that step.
* A row of a batch in flight stays in its slot, so it is never read from the host a second time.
* An evicted row is read again only by a later plan, after it was written to the host.
* If a batch has more cold rows than slots, its step reads and writes the others directly on the host. Such a
  batch uses every slot, so a later plan that may read the same rows evicts rows of that batch and therefore
  waits for its step.
"""

from dataclasses import dataclass

import numpy as np

from storage.tables.eviction.frequency_prefix import LeastRecentlyUsed
from storage.tables.eviction.slot_order import NO_STEP, SlotOrder


@dataclass(frozen=True)
class CachePlan:
    """Transfers that must precede the step of a batch, and the slots of its rows. All arrays are int64."""

    number: int  # batch number since the table was created
    ids: np.ndarray  # rows of the batch, (unique,)
    slots: np.ndarray  # slot of each row; 0 for rows used directly
    direct: np.ndarray  # positions in ``ids`` of rows without a slot
    leave_ids: np.ndarray  # rows to write to the host
    leave_slots: np.ndarray  # their slots
    enter_ids: np.ndarray  # rows to read from the host
    enter_slots: np.ndarray  # their slots
    depends_on_step: int  # last step whose write-back must precede the transfers; NO_STEP: none

    def step_arrays(self) -> list[np.ndarray]:
        """Returns what a step needs on the device: ids, slots, direct, and positions of rows with a slot.

        The last array is empty if all rows have a slot.
        """
        with_slot = np.delete(np.arange(len(self.ids)), self.direct) if len(self.direct) else self.direct
        return [self.ids, self.slots, self.direct, with_slot]


class Planner:
    """Plans which of ``rows`` rows are in the ``hot + recent`` slots of a cache."""

    def __init__(self, rows: int, hot: int, recent: int, order: SlotOrder | None = None) -> None:
        self.hot, self.recent = hot, recent
        self._slot = np.full(rows - hot, -1, dtype=np.int32)  # slot of each cold row; -1: on the host
        self._id = np.full(recent, -1, dtype=np.int64)  # row in each recent slot; -1: empty
        self._last = np.full(recent, NO_STEP, dtype=np.int64)  # last batch that used the slot
        self.order = order or LeastRecentlyUsed(recent)
        self._number = 0

    def plan(self, ids: np.ndarray) -> CachePlan:
        """Plans the next batch of distinct rows, int64 (unique,).

        Raises:
            ValueError: ``ids`` contains duplicates.
        """
        number, self._number = self._number, self._number + 1
        cold = self._cold(ids)
        cold_slots = self._slot[ids[cold] - self.hot].astype(np.int64)
        cached = cold_slots >= 0
        hits = cold[cached]
        hit_slots = cold_slots[cached]
        self._last[hit_slots] = number  # prevents their eviction by this batch
        missing = cold[~cached]
        count = min(len(missing), self.recent - len(hits))
        free = self.order.victims(count, number, self._id, self._last)
        enter, direct = missing[: len(free)], missing[len(free) :]
        leaving = free[self._id[free] >= 0]
        leave_ids = self._id[leaving]
        depends_on_step = int(self._last[leaving].max(initial=NO_STEP))
        self._slot[leave_ids - self.hot] = -1
        self._slot[ids[enter] - self.hot] = free
        self._id[free] = ids[enter]
        self._last[free] = number
        slots = ids.copy()
        slots[hits] = hit_slots + self.hot
        slots[enter] = free + self.hot
        slots[direct] = 0
        used_slots = np.concatenate([hit_slots, free])
        self.order.record(number, ids[cold], used_slots, self._last)
        moves = leave_ids, leaving + self.hot, ids[enter], free + self.hot
        return CachePlan(number, ids, slots, direct, *moves, depends_on_step)

    def locate(self, ids: np.ndarray) -> np.ndarray:
        """Returns the slot of each row, -1 for rows on the host: int64 (unique,)."""
        slots, cold = ids.copy(), self._cold(ids)
        cold_slots = self._slot[ids[cold] - self.hot].astype(np.int64)
        slots[cold] = np.where(cold_slots < 0, -1, cold_slots + self.hot)
        return slots

    def plan_in_place(self, ids: np.ndarray) -> CachePlan:
        """Plans a step outside of ``prefetch``: without transfers, with rows on the host used directly."""
        slots, none = self.locate(ids), np.zeros(0, dtype=np.int64)
        direct = np.flatnonzero(slots < 0)
        return CachePlan(NO_STEP, ids, slots.clip(0), direct, none, none, none, none, NO_STEP)

    def _cold(self, ids: np.ndarray) -> np.ndarray:
        """Returns the positions of cold rows. Raises a ValueError if ids are not distinct."""
        if (ids[1:] > ids[:-1]).all():  # the usual case
            return np.arange(np.searchsorted(ids, self.hot), len(ids))
        check_distinct(ids)
        return np.flatnonzero(ids >= self.hot)


def check_distinct(ids: np.ndarray) -> None:
    """Raises a ValueError if ids are not distinct, because one of two updates of a row would be lost."""
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < len(ids):
        duplicates = values[counts > 1][:5].tolist()
        raise ValueError(f"a batch contains rows {duplicates} more than once; pass `torch.unique` of its ids")
