"""Cache of the dual cached SVM (dual_cached.py): keeps samples in memory and trains on them."""

import numpy as np

from tasks.compiled import compiled
from tasks.linear import dual_loops
from tasks.linear.blocks import SampleBlock
from tasks.linear.dual_loops import DualState, SampleRows

ROW_BYTES = 37  # memory per cached row in addition to its ids and values
EVICTION_DIVISOR = 8  # an eviction removes at least 1/8 of the rows


def load_rows(block: SampleBlock, weights: np.ndarray, squared: bool = False) -> tuple[SampleRows, float]:
    """Returns the samples of a block as rows without slacks, and the sum of their losses at ``weights``."""
    count = len(block.labels)
    rows = SampleRows(
        offsets=block.offsets,
        ids=block.ids.view(np.uint32),
        values=block.values,
        labels=block.labels,
        samples=np.arange(block.first, block.first + count),
        norms=np.empty(count, dtype=np.float64),
        slacks=np.empty(count, dtype=np.float32),
    )
    return rows, compiled(dual_loops.sum_losses, fastmath=True)(rows, weights, squared)


class SampleCache:
    """Cache of samples in memory. It evicts the samples with the largest slack (dual_loops.py) first.

    Attributes:
        rows: Storage for rows, of which the first ``count`` are used.
        is_cached: bool (samples,), whether a sample is cached.
    """

    def __init__(self, size: int, samples: int, values: int, rng: np.random.Generator) -> None:
        """Allocates ``size`` bytes for rows that have ``values / samples`` values on average."""
        row_capacity = int(size / (8 * values / samples + ROW_BYTES))
        value_capacity = int((size - row_capacity * ROW_BYTES) / 8)
        self.rows = SampleRows(
            offsets=np.zeros(row_capacity + 1, dtype=np.int64),
            ids=np.empty(value_capacity, dtype=np.uint32),
            values=np.empty(value_capacity, dtype=np.float32),
            labels=np.empty(row_capacity, dtype=np.int8),
            samples=np.empty(row_capacity, dtype=np.int64),
            norms=np.empty(row_capacity, dtype=np.float64),
            slacks=np.empty(row_capacity, dtype=np.float32),
        )
        self.is_cached = np.zeros(samples, dtype=bool)
        self.count = 0
        self._rng = rng
        self._visit_rows = compiled(dual_loops.visit_rows, fastmath=True)
        self._remaining = np.zeros(0, dtype=np.int64)  # rows that the current sweep has not visited
        self._last_violation, self._sweep_violation = np.inf, 0.0
        self._slack_limit = np.inf  # rows with a larger slack are not added

    @property
    def violation(self) -> float:
        """Largest projected gradient of the last complete sweep over the cache and of later visits."""
        return max(self._last_violation, self._sweep_violation)

    def visit_new(self, rows: SampleRows, state: DualState) -> float:
        """Performs a dual step on each row of a block that is not cached, and adds these rows to the cache.

        Returns the change of Σ (α − ½Dα²).
        """
        order = self._rng.permutation(np.flatnonzero(~self.is_cached[rows.samples]))
        dual_change, violation = self._visit_rows(rows, order, state)
        self._sweep_violation = max(self._sweep_violation, violation)
        self._add(rows)
        return dual_change

    def sweep(self, values: int, state: DualState) -> float:
        """Performs dual steps on the next cached rows, which have about ``values`` values in total.

        Returns the change of Σ (α − ½Dα²).
        """
        if not len(self._remaining):
            self._last_violation, self._sweep_violation = self._sweep_violation, 0.0
            self._remaining = self._rng.permutation(self.count)
        count = max(1, int(values * self.count / max(self._value_count, 1)))
        batch, self._remaining = self._remaining[:count], self._remaining[count:]
        dual_change, violation = self._visit_rows(self.rows, batch, state)
        self._sweep_violation = max(self._sweep_violation, violation)
        return dual_change

    @property
    def _value_count(self) -> int:
        return int(self.rows.offsets[self.count])

    def _add(self, rows: SampleRows) -> None:
        """Caches the rows of a block that are not cached yet and whose slack is small enough."""
        added_rows = np.flatnonzero((rows.slacks <= self._slack_limit) & ~self.is_cached[rows.samples])
        lengths = np.diff(rows.offsets)
        excess_rows = self.count + len(added_rows) - len(self.rows.labels)
        excess_values = self._value_count + int(lengths[added_rows].sum()) - len(self.rows.ids)
        if max(excess_rows, excess_values) > 0:
            self._evict(excess_rows, excess_values)
            added_rows = added_rows[rows.slacks[added_rows] <= self._slack_limit]
            added_rows = added_rows[: len(self.rows.labels) - self.count]
            added_rows = added_rows[np.cumsum(lengths[added_rows]) <= len(self.rows.ids) - self._value_count]
        compiled(dual_loops.copy_rows)(rows, added_rows, self.rows, self.count)
        self.count += len(added_rows)
        self.is_cached[rows.samples[added_rows]] = True

    def _evict(self, row_count: int, value_count: int) -> None:
        """Evicts at least ``row_count`` rows and ``value_count`` values, by descending slack, then by age."""
        order = np.argsort(-self.rows.slacks[: self.count], kind="stable")
        sizes = np.cumsum(np.diff(self.rows.offsets)[order])
        rows_for_values = int(np.searchsorted(sizes, value_count)) + 1
        evicted_rows = order[: max(row_count, rows_for_values, self.count // EVICTION_DIVISOR)]
        self._slack_limit = float(self.rows.slacks[evicted_rows].min(initial=np.inf))
        self.is_cached[self.rows.samples[evicted_rows]] = False
        is_kept = np.ones(self.count, dtype=bool)
        is_kept[evicted_rows] = False
        self._remaining = (np.cumsum(is_kept) - 1)[self._remaining[is_kept[self._remaining]]]
        compiled(dual_loops.copy_rows)(self.rows, np.flatnonzero(is_kept), self.rows, 0)
        self.count = int(is_kept.sum())
