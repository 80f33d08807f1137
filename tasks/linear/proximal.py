"""Stochastic gradient descent with L1 by a proximal operator that is applied lazily.

A step is a gradient step followed by the proximal operator of the penalty, the soft threshold:

    w ← soft(w − η g, η α),    soft(v, p) = sign(v) max(|v| − p, 0)

Thresholds add up, soft(soft(v, p), q) = soft(v, p + q), and a sample has no gradient for features that it
does not contain. The pending threshold S − last of a row is therefore applied when a sample reads the row: S
is the sum of η α of all steps so far, and ``last`` is S at the previous read. Except for rounding this equals
shrinking every weight at every step. ``apply_pending_`` updates all rows at the end of a call.

A weight is exactly 0 only until a sample changes it, so many weights are small where ``ftrl.py`` leaves 0. On
titles this solver has the better accuracy in half the time (``tasks/baselines/logistic.py``).

References:
    Langford, Li, Zhang. *Sparse online learning via truncated gradient*. JMLR 10, 2009, section 3.3.
    Duchi, Singer. *Efficient online and batch learning using forward backward splitting*. JMLR 10, 2009,
    equation 19.
"""

from typing import Literal, no_type_check

import numpy as np

from storage.arrays import row_blocks
from tasks.form import configurable, setting

# Learning rate of the intercept relative to that of weights, since every sample changes it. At 1, its noise
# was most of the suboptimality after 10 to 20 passes, up to .0016 of the objective. (SGDClassifier uses .01.)
INTERCEPT_RATE = 0.1
_HALVED = "Number of samples after which the learning rate is halved."


@configurable
class ProximalSgd:
    """Proximal SGD with learning rate ``learning_rate / (1 + seen / halved)``, constant within a block.

    The record of a feature is float32 (labels + 1,): its weights, then ``last``.
    """

    name: Literal["proximal_sgd"] = "proximal_sgd"
    learning_rate: float = setting(1.0, "Step at the start; about 1 / ‖x‖² of the samples.", gt=0)
    halved: float = setting(50_000, _HALVED, gt=0)

    def record_size(self, labels: int) -> int:
        """Number of values in the record of a feature."""
        return labels + 1

    def schedule(self, seen: np.ndarray, counts: np.ndarray, alpha: float) -> np.ndarray:
        """Learning rate, initial S and its growth per sample, for each block: float64 (blocks, 3)."""
        rates = self.learning_rate / (1 + seen / self.halved)
        growth = rates * alpha
        return np.stack([rates, np.cumsum(growth * counts) - growth * counts, growth], axis=1)

    def loop(self, labels: int) -> tuple:
        """The function that processes a block, and its constant arguments."""
        return (_step_one if labels == 1 else _step_many), (np.float32(INTERCEPT_RATE),)

    def apply_pending_(self, records: np.ndarray, schedule: np.ndarray, counts: np.ndarray) -> None:
        """Applies the pending thresholds of all rows and resets ``last`` to 0."""
        total = np.float32(schedule[-1, 1] + schedule[-1, 2] * counts[-1])
        for block in row_blocks(len(records)):  # a million features at once would take 1.5 GB
            weights, pending = records[block, :-1], np.maximum(total - records[block, -1:], 0)
            weights[:] = np.sign(weights) * np.maximum(np.abs(weights) - pending, 0)
        records[:, -1] = 0

    def weights(self, records: np.ndarray, seen: int, alpha: float) -> np.ndarray:
        """Weights, float32 (features, labels + 1): the records, whose last column is 0 after
        ``apply_pending_``.
        """
        return records

    def intercepts(self, state: np.ndarray) -> np.ndarray:
        """Intercepts, float32 (labels,)."""
        return state[0].copy()


@no_type_check
def _step_one(
    offsets, ids, values, held_offsets, held, order, rate, passed, growth, longest, records, state, share
):
    """Processes a block for one label. Weights are copied to a contiguous buffer so that the sum is
    vectorized.

    Threads that share the records may be several blocks apart. A row whose ``last`` exceeds this thread's S
    keeps it, since it would otherwise be shrunk twice. Records are read again before they are written,
    because another thread may have changed them meanwhile.
    """
    zero, one, rate = np.float32(0), np.float32(1), np.float32(rate)
    kept = np.empty(longest, np.float32)
    start = state[0, 0]
    intercept = start
    for visit in range(len(order)):
        row = order[visit]
        features, value = ids[offsets[row] : offsets[row + 1]], values[offsets[row] : offsets[row + 1]]
        passed_now = np.float32(passed + visit * growth)
        for place in range(len(features)):
            record = records[features[place]]
            pending = max(passed_now - record[1], zero)
            kept[place] = max(record[0] - pending, zero) + min(record[0] + pending, zero)
        margin = intercept
        for place in range(len(features)):
            margin += kept[place] * value[place]
        step = one / (one + np.exp(-margin))
        if held_offsets[row] < held_offsets[row + 1]:
            step -= one
        step *= rate
        for place in range(len(features)):
            record = records[features[place]]
            pending = max(passed_now - record[1], zero)
            shrunk = max(record[0] - pending, zero) + min(record[0] + pending, zero)
            record[0] = shrunk - step * value[place]
            record[1] = max(record[1], passed_now)
        intercept -= share * step
    state[0, 0] += intercept - start  # once per block, to avoid contention between threads


@no_type_check
def _step_many(
    offsets, ids, values, held_offsets, held, order, rate, passed, growth, longest, records, state, share
):
    """Processes a block for several labels. The inner loops over labels are vectorized."""
    zero, one, rate = np.float32(0), np.float32(1), np.float32(rate)
    labels = state.shape[1]
    start = state[0].copy()
    intercepts, step = start.copy(), np.empty(labels, np.float32)
    for visit in range(len(order)):
        row = order[visit]
        features, value = ids[offsets[row] : offsets[row + 1]], values[offsets[row] : offsets[row + 1]]
        passed_now = np.float32(passed + visit * growth)
        step[:] = intercepts  # margins first
        for place in range(len(features)):
            record, factor = records[features[place]], value[place]
            pending = max(passed_now - record[labels], zero)
            record[labels] = max(record[labels], passed_now)
            for label in range(labels):
                weight = record[label]
                weight = max(weight - pending, zero) + min(weight + pending, zero)
                record[label] = weight
                step[label] += weight * factor
        for label in range(labels):
            step[label] = one / (one + np.exp(-step[label]))
        for place in range(held_offsets[row], held_offsets[row + 1]):
            step[held[place]] -= one
        for label in range(labels):
            step[label] *= rate
            intercepts[label] -= share * step[label]
        for place in range(len(features)):
            record, factor = records[features[place]], value[place]
            for label in range(labels):
                record[label] -= step[label] * factor
    for label in range(labels):
        state[0, label] += intercepts[label] - start[label]
