"""Assigns cache slots to rows, one batch at a time, before the training steps run.

The first ``hot`` rows have permanent slots (slot = row number). All other rows are called cold. They share
the ``recent`` slots, which are reused in the order of an eviction policy, by default the least recently used
slot first. A plan depends on the batches but not on time, so runs are reproducible.

Plans are executed in order. The result is exact because of these invariants, on which prefetch.py also
relies:

* The last step that used an evicted row is ``depends_on_step`` or earlier. The transfer waits for the
  write-back of that step.
* A row that a planned batch uses stays in its slot until the step of the batch, so the row is never read from
  the host a second time.
* An evicted row is read again only by a later plan, after it was written to the host.
* If a batch has more cold rows than there are slots, the step reads and writes the remaining cold rows
  directly on the host. Such a batch uses every slot, so a later plan that may read the same rows evicts rows
  of that batch, and therefore waits for its step.
"""

from dataclasses import dataclass

import numpy as np

from storage.tables.eviction.frequency_prefix import LeastRecentlyUsed
from storage.tables.eviction.slot_order import NO_STEP, SlotOrder


@dataclass(frozen=True)
class CachePlan:
    """Transfers that must precede the step of a batch, and the slots of its rows. All arrays are int64."""

    number: int  # number of the batch since the table was created; NO_STEP outside of ``prefetch``
    ids: np.ndarray  # distinct rows of the batch, (unique,)
    slots: np.ndarray  # slot of each row, (unique,); 0 for rows without a slot
    direct: np.ndarray  # positions in ``ids`` of the rows without a slot, which are used directly on the host
    leave_ids: np.ndarray  # rows to write to the host
    leave_slots: np.ndarray  # slots from which these rows are written
    enter_ids: np.ndarray  # rows to read from the host
    enter_slots: np.ndarray  # slots into which these rows are read
    depends_on_step: int  # last step whose write-back must precede the transfers; NO_STEP: none

    def step_arrays(self) -> list[np.ndarray]:
        """Returns the arrays that a step needs on the device, in the order of the fields of ReadyBatch.

        The last array, the positions of the rows with a slot, is empty if all rows have a slot.
        """
        with_slot = np.delete(np.arange(len(self.ids)), self.direct) if len(self.direct) else self.direct
        return [self.ids, self.slots, self.direct, with_slot]


class Planner:
    """Plans which rows of a table are in the slots of its cache.

    Args:
        rows: Number of rows of the table.
        hot: Number of permanent slots, with the first rows of the table.
        recent: Number of slots that cold rows share.
        order: Order in which the recent slots are reused; None: the least recently used slot first.
    """

    def __init__(self, rows: int, hot: int, recent: int, order: SlotOrder | None = None) -> None:
        self.hot, self.recent = hot, recent
        self._row_slots = np.full(rows - hot, -1, dtype=np.int32)  # recent slot of each cold row; -1: none
        self._slot_rows = np.full(recent, -1, dtype=np.int64)  # row in each recent slot; -1: empty
        self._last_batches = np.full(recent, NO_STEP, dtype=np.int64)  # last batch that used each recent slot
        self.order = order or LeastRecentlyUsed(recent)
        self._batches = 0  # number of planned batches

    def plan(self, ids: np.ndarray) -> CachePlan:
        """Assigns slots to the rows of the next batch, and plans the necessary transfers.

        Args:
            ids: Distinct rows of the batch, int64 (unique,).

        Raises:
            ValueError: ``ids`` contains duplicates.
        """
        number, self._batches = self._batches, self._batches + 1
        cold = self._find_cold(ids)  # positions in ``ids``; hits, misses, enter and direct are parts of them
        cold_slots = self._row_slots[ids[cold] - self.hot].astype(np.int64)
        is_cached = cold_slots >= 0
        hits, hit_slots = cold[is_cached], cold_slots[is_cached]
        self._last_batches[hit_slots] = number  # prevents the eviction of these rows by this batch
        misses = cold[~is_cached]
        reused_count = min(len(misses), self.recent - len(hits))
        free_slots = self.order.victims(reused_count, number, self._slot_rows, self._last_batches)
        enter, direct = misses[: len(free_slots)], misses[len(free_slots) :]
        leave_slots = free_slots[self._slot_rows[free_slots] >= 0]
        leave_ids = self._slot_rows[leave_slots]
        depends_on_step = int(self._last_batches[leave_slots].max(initial=NO_STEP))
        self._row_slots[leave_ids - self.hot] = -1
        self._row_slots[ids[enter] - self.hot] = free_slots
        self._slot_rows[free_slots] = ids[enter]
        self._last_batches[free_slots] = number
        slots = ids.copy()
        slots[hits] = hit_slots + self.hot
        slots[enter] = free_slots + self.hot
        slots[direct] = 0
        used_slots = np.concatenate([hit_slots, free_slots])
        self.order.record(number, ids[cold], used_slots, self._last_batches)
        return CachePlan(
            number=number,
            ids=ids,
            slots=slots,
            direct=direct,
            leave_ids=leave_ids,
            leave_slots=leave_slots + self.hot,
            enter_ids=ids[enter],
            enter_slots=free_slots + self.hot,
            depends_on_step=depends_on_step,
        )

    def locate(self, ids: np.ndarray) -> np.ndarray:
        """Returns the slot of each row of ``ids``, or -1 if the row has no slot: int64 (unique,)."""
        slots, cold = ids.copy(), self._find_cold(ids)
        cold_slots = self._row_slots[ids[cold] - self.hot].astype(np.int64)
        slots[cold] = np.where(cold_slots < 0, -1, cold_slots + self.hot)
        return slots

    def plan_in_place(self, ids: np.ndarray) -> CachePlan:
        """Plans a step outside of ``prefetch``: no transfers; rows without a slot are used on the host."""
        slots, empty = self.locate(ids), np.zeros(0, dtype=np.int64)
        direct = np.flatnonzero(slots < 0)
        return CachePlan(NO_STEP, ids, slots.clip(0), direct, empty, empty, empty, empty, NO_STEP)

    def _find_cold(self, ids: np.ndarray) -> np.ndarray:
        """Returns the positions of cold rows in ``ids``. Raises a ValueError if ``ids`` has duplicates."""
        if (ids[1:] > ids[:-1]).all():  # the usual case
            return np.arange(np.searchsorted(ids, self.hot), len(ids))
        check_distinct(ids)
        return np.flatnonzero(ids >= self.hot)


def check_distinct(ids: np.ndarray) -> None:
    """Raises a ValueError if ``ids`` has duplicates, because one of two updates of a row would be lost."""
    distinct_ids, counts = np.unique(ids, return_counts=True)
    if len(distinct_ids) < len(ids):
        duplicates = distinct_ids[counts > 1][:5].tolist()
        raise ValueError(f"a batch contains rows {duplicates} more than once; pass `torch.unique` of its ids")
