"""Cache of the dual cached SVM (dual_cached.py): keeps samples in memory and trains on them."""

import numpy as np

from tasks.compiled import compiled
from tasks.linear import dual_loops
from tasks.linear.blocks import SampleBlock
from tasks.linear.dual_loops import Loss, SampleRows

ROW_BYTES = 45  # memory per cached row in addition to its ids and values
EVICTION_DIVISOR = 8  # an eviction removes at least this fraction, 1/8, of the rows


def load_rows(block: SampleBlock, weights: np.ndarray, squared: bool = False) -> tuple[SampleRows, float]:
    """Returns the samples of a block as rows with uninitialized slacks, and the sum of their losses."""
    count = len(block.labels)
    rows = SampleRows(
        begins=block.offsets[:-1],
        ends=block.offsets[1:],
        ids=block.ids.view(np.uint32),
        values=block.values,
        labels=block.labels,
        samples=np.arange(block.first, block.first + count),
        norms=np.empty(count, dtype=np.float64),
        slacks=np.empty(count, dtype=np.float32),
    )
    return rows, compiled(dual_loops.sum_losses, fastmath=True)(rows, weights, squared)


def visit(
    rows: SampleRows, order: np.ndarray, alphas: np.ndarray, weights: np.ndarray, loss: Loss
) -> tuple[float, float]:
    """Performs the compiled dual steps of dual_loops.visit on the rows in ``order``."""
    return compiled(dual_loops.visit, fastmath=True)(rows, order, alphas, weights, loss)


class SampleCache:
    """Cache of samples in memory, which evicts those with the largest slack (dual_loops.py) first.

    Attributes:
        rows: Storage for rows, of which the first ``count`` are used.
        holds: bool (samples,), whether a sample is cached.
    """

    def __init__(self, size: int, samples: int, values: int, rng: np.random.Generator) -> None:
        """Allocates ``size`` bytes for rows of the mean length ``values / samples``."""
        count = int(size / (8 * values / samples + ROW_BYTES))
        length = int((size - count * ROW_BYTES) / 8)
        self.rows = SampleRows(
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
        self._remaining = np.zeros(0, dtype=np.int64)  # rows that the current sweep has not visited
        self._last_violation, self._sweep_violation = np.inf, 0.0
        self._limit = np.inf  # rows with a larger slack are not cached

    @property
    def violation(self) -> float:
        """Largest projected gradient of the last complete sweep over the cache and of later visits."""
        return max(self._last_violation, self._sweep_violation)

    def sweep(self, values: int, alphas: np.ndarray, weights: np.ndarray, loss: Loss) -> float:
        """Visits cached rows with about ``values`` values in total. Returns the change of Σ (α − ½Dα²)."""
        if not len(self._remaining):
            self._last_violation, self._sweep_violation = self._sweep_violation, 0.0
            self._remaining = self._rng.permutation(self.count)
        count = max(1, int(values * self.count / max(self._used, 1)))
        batch, self._remaining = self._remaining[:count], self._remaining[count:]
        total, violation = visit(self.rows, batch, alphas, weights, loss)
        self._sweep_violation = max(self._sweep_violation, violation)
        return total

    def add(self, rows: SampleRows, violation: float) -> None:
        """Caches the new rows of a block whose slack is small enough.

        Args:
            rows: Rows of the block.
            violation: Largest projected gradient of the block.
        """
        self._sweep_violation = max(self._sweep_violation, violation)
        additions = np.flatnonzero((rows.slacks <= self._limit) & ~self.holds[rows.samples])
        lengths = rows.ends - rows.begins
        too_many = self.count + len(additions) - len(self.rows.begins)
        too_long = self._used + int(lengths[additions].sum()) - len(self.rows.ids)
        if max(too_many, too_long) > 0:
            self._evict(too_many, too_long)
            additions = additions[rows.slacks[additions] <= self._limit][: len(self.rows.begins) - self.count]
            additions = additions[np.cumsum(lengths[additions]) <= len(self.rows.ids) - self._used]
        compiled(dual_loops.append)(self.rows, self.count, self._used, rows, additions)
        self.count += len(additions)
        self.holds[rows.samples[additions]] = True

    @property
    def _used(self) -> int:
        return int(self.rows.ends[self.count - 1]) if self.count else 0

    def _evict(self, rows: int, values: int) -> None:
        """Evicts rows, by descending slack and age, until ``rows`` rows with ``values`` values fit."""
        order = np.argsort(-self.rows.slacks[: self.count], kind="stable")
        sizes = np.cumsum((self.rows.ends - self.rows.begins)[order])
        evicted = order[: max(rows, int(np.searchsorted(sizes, values)) + 1, self.count // EVICTION_DIVISOR)]
        self._limit = float(self.rows.slacks[evicted].min(initial=np.inf))
        self.holds[self.rows.samples[evicted]] = False
        is_kept = np.ones(self.count, dtype=bool)
        is_kept[evicted] = False
        self._remaining = (np.cumsum(is_kept) - 1)[self._remaining[is_kept[self._remaining]]]
        compiled(dual_loops.compact_rows)(self.rows, np.flatnonzero(is_kept))
        self.count = int(is_kept.sum())
