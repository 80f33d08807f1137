"""Interface of the order in which the slots of a cache are reused."""

from typing import Protocol

import numpy as np

NO_STEP = -1  # step number that precedes all steps


class SlotOrder(Protocol):
    """Chooses slots for the planner. ``last`` has the last batch that used each slot."""

    def victims(self, count: int, batch: int, slot_rows: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Returns ``count`` distinct slots to reuse, int64 (count,), none of which ``batch`` uses.

        Args:
            count: Number of slots, at most that of the slots that ``batch`` does not use.
            batch: Number of the batch that is planned.
            slot_rows: Row in each slot, int64 (slots,); -1: empty.
            last: Last batch that used each slot, int64 (slots,).
        """
        ...

    def record(self, batch: int, rows: np.ndarray, slots: np.ndarray, last: np.ndarray) -> None:
        """Counts the use of ``rows`` by a planned batch, which occupies ``slots``."""
        ...
