"""The samples that the dual cached SVM holds in memory, and its visits of them."""

import numpy as np

from tasks.compiled import compiled
from tasks.linear import dual_loops
from tasks.linear.blocks import Block
from tasks.linear.dual_loops import Rows

ROW_BYTES = 45  # of a cached row, beside its ids and values: the arrays of Rows and its place in the order
FREED = 8  # an eviction frees at least one row in so many


def rows_of(block: Block, weights: np.ndarray) -> tuple[Rows, float]:
    """A block's rows, slacks yet to be filled; and the sum of their hinge losses under these weights."""
    count = len(block.labels)
    rows = Rows(
        begins=block.offsets[:-1],
        ends=block.offsets[1:],
        ids=block.ids.view(np.uint32),
        values=block.values,
        labels=block.labels,
        samples=np.arange(block.first, block.first + count),
        norms=np.empty(count, dtype=np.float64),
        slacks=np.empty(count, dtype=np.float32),
    )
    return rows, compiled(dual_loops.measure, fastmath=True)(rows, weights)


def visit(
    rows: Rows, order: np.ndarray, alphas: np.ndarray, weights: np.ndarray, cost: np.float32
) -> tuple[float, float]:
    """A step for each row of ``order``; returns ΣΔα and the largest projected gradient."""
    return compiled(dual_loops.visit, fastmath=True)(rows, order, alphas, weights, cost)


class SampleCache:
    """Rows held in memory; those whose gradient holds α firmest at its bound leave first.

    Attributes:
        rows: Of which the first ``count`` are in use.
        holds: Whether a sample is here: bool (samples,).
    """

    def __init__(self, size: int, samples: int, values: int, rng: np.random.Generator) -> None:
        """Takes ``size`` bytes, for rows as long as those of a file of so many samples and stored values."""
        count = int(size / (8 * values / samples + ROW_BYTES))
        length = int((size - count * ROW_BYTES) / 8)
        self.rows = Rows(
            begins=np.empty(count, dtype=np.int64),
            ends=np.empty(count, dtype=np.int64),
            ids=np.empty(length, dtype=np.uint32),
            values=np.empty(length, dtype=np.float32),
            labels=np.empty(count, dtype=np.int8),
            samples=np.empty(count, dtype=np.int64),
            norms=np.empty(count, dtype=np.float64),
            slacks=np.empty(count, dtype=np.float32),
        )
        self.holds = np.zeros(samples, dtype=bool)
        self.count = 0
        self._rng = rng
        self._left = np.zeros(0, dtype=np.int64)  # rows that the sweep has yet to visit
        self._before, self._seen = np.inf, 0.0
        self._limit = np.inf  # rows of more slack would be the first to leave

    @property
    def violation(self) -> float:
        """Largest projected gradient of the last whole sweep, and of what was visited since."""
        return max(self._before, self._seen)

    def sweep(self, values: int, alphas: np.ndarray, weights: np.ndarray, cost: np.float32) -> float:
        """Goes on with the sweep, by rows of about so many values; returns ΣΔα."""
        if not len(self._left):
            self._before, self._seen = self._seen, 0.0
            self._left = self._rng.permutation(self.count)
        count = max(1, int(values * self.count / max(self._used, 1)))
        now, self._left = self._left[:count], self._left[count:]
        total, violation = visit(self.rows, now, alphas, weights, cost)
        self._seen = max(self._seen, violation)
        return total

    def add(self, rows: Rows, violation: float) -> None:
        """Takes in those rows of a block that are worth it and not here yet; ``violation`` is the block's."""
        self._seen = max(self._seen, violation)
        wanted = np.flatnonzero((rows.slacks <= self._limit) & ~self.holds[rows.samples])
        lengths = rows.ends - rows.begins
        too_many = self.count + len(wanted) - len(self.rows.begins)
        too_long = self._used + int(lengths[wanted].sum()) - len(self.rows.ids)
        if max(too_many, too_long) > 0:
            self._make_room(too_many, too_long)
            wanted = wanted[rows.slacks[wanted] <= self._limit][: len(self.rows.begins) - self.count]
            wanted = wanted[np.cumsum(lengths[wanted]) <= len(self.rows.ids) - self._used]
        compiled(dual_loops.append)(self.rows, self.count, self._used, rows, wanted)
        self.count += len(wanted)
        self.holds[rows.samples[wanted]] = True

    @property
    def _used(self) -> int:
        return int(self.rows.ends[self.count - 1]) if self.count else 0

    def _make_room(self, rows: int, values: int) -> None:
        """For so many rows, of so many values: those of most slack leave, of equal ones the oldest."""
        order = np.argsort(-self.rows.slacks[: self.count], kind="stable")
        freed = np.cumsum((self.rows.ends - self.rows.begins)[order])
        leaving = order[: max(rows, int(np.searchsorted(freed, values)) + 1, self.count // FREED)]
        self._limit = float(self.rows.slacks[leaving].min(initial=np.inf))
        self.holds[self.rows.samples[leaving]] = False
        stays = np.ones(self.count, dtype=bool)
        stays[leaving] = False
        self._left = (np.cumsum(stays) - 1)[self._left[stays[self._left]]]
        compiled(dual_loops.move_together)(self.rows, np.flatnonzero(stays))
        self.count = int(stays.sum())
