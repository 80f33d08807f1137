"""Defines the interface of the order in which the slots of a cache are reused."""

from typing import Protocol

import numpy as np

NO_STEP = -1  # step number that precedes all steps


class SlotOrder(Protocol):
    """Order in which slots are reused. The planner calls ``victims`` and then ``record`` for each batch."""

    def victims(self, count: int, batch: int, slot_rows: np.ndarray, last_batches: np.ndarray) -> np.ndarray:
        """Returns ``count`` distinct slots to reuse, int64 (count,). The planned batch uses none of them.

        Args:
            count: Number of slots to return; the batch leaves at least this number of slots unused.
            batch: Number of the planned batch.
            slot_rows: Row in each slot, int64 (slots,); -1: empty.
            last_batches: Last batch that used each slot, int64 (slots,).
        """
        ...

    def record(self, batch: int, rows: np.ndarray, slots: np.ndarray, last_batches: np.ndarray) -> None:
        """Records that the planned batch uses rows in slots.

        Args:
            batch: Number of the planned batch.
            rows: Rows that the batch uses, int64 (any,).
            slots: Slots that the batch uses, int64 (any,).
            last_batches: Last batch that used each slot, including this batch, int64 (slots,).
        """
        ...
