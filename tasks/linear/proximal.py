"""Stochastic gradient descent with L1 by its proximal operator, applied lazily to the features of a sample.

A step is a gradient step and then the proximal operator of the penalty, the soft threshold:

    w ← soft(w − η g, η α),    soft(v, p) = sign(v) max(|v| − p, 0)

Thresholds add up, soft(soft(v, p), q) = soft(v, p + q), and a sample has no gradient for features that it
does not hold. So a row is brought up to date when a sample reads it, by S − last: S is the sum of η α of all
steps so far, ``last`` what it was when the row was read before. That is the eager form, which shrinks every
weight at every step, but for rounding; ``settle_`` brings all rows up to date at the end of a call.

A weight is 0 only until a sample moves it: so many are small and not 0, where ``ftrl.py`` leaves 0. On titles
this solver gives the better accuracy in half the time (``tasks/baselines/logistic.py``).

References:
    Langford, Li, Zhang. *Sparse online learning via truncated gradient*. JMLR 10, 2009, section 3.3.
    Duchi, Singer. *Efficient online and batch learning using forward backward splitting*. JMLR 10, 2009,
    equation 19.
"""

from typing import Literal, no_type_check

import numpy as np

from storage.arrays import row_blocks
from tasks.form import configurable, setting

# Of the intercept, by that of weights: every sample moves it. At 1 its noise was most of what 10 to 20 passes
# lacked to the optimum, up to .0016 of the objective. (SGDClassifier takes .01 for sparse samples.)
INTERCEPT_RATE = 0.1
_HALVED = "Samples seen after which the learning rate is half as large."


@configurable
class ProximalSgd:
    """The learning rate is ``learning_rate / (1 + seen / halved)``, constant within a block of samples.

    The record of a feature is its weights and ``last``: float32 (labels + 1,).
    """

    name: Literal["proximal_sgd"] = "proximal_sgd"
    learning_rate: float = setting(1.0, "Step at the start; about 1 / ‖x‖² of the samples.", gt=0)
    halved: float = setting(50_000, _HALVED, gt=0)

    def record_size(self, labels: int) -> int:
        """Numbers that the record of a feature takes."""
        return labels + 1

    def schedule(self, seen: np.ndarray, counts: np.ndarray, alpha: float) -> np.ndarray:
        """Learning rate, S at the start and its growth by sample, of each block: float64 (blocks, 3)."""
        rates = self.learning_rate / (1 + seen / self.halved)
        growth = rates * alpha
        return np.stack([rates, np.cumsum(growth * counts) - growth * counts, growth], axis=1)

    def loop(self, labels: int) -> tuple:
        """The step over a block, and the constants that it takes."""
        return (_step_one if labels == 1 else _step_many), (np.float32(INTERCEPT_RATE),)

    def settle_(self, records: np.ndarray, schedule: np.ndarray, counts: np.ndarray) -> None:
        """Brings all rows up to date, so that S may begin at 0 again."""
        total = np.float32(schedule[-1, 1] + schedule[-1, 2] * counts[-1])
        for own in row_blocks(len(records)):  # of a million features all at once would take 1.5 GB
            weights, pending = records[own, :-1], np.maximum(total - records[own, -1:], 0)
            weights[:] = np.sign(weights) * np.maximum(np.abs(weights) - pending, 0)
        records[:, -1] = 0

    def weights(self, records: np.ndarray, seen: int, alpha: float) -> np.ndarray:
        """Float32 (features, labels + 1): the records themselves, settled, of which the last column is 0."""
        return records

    def intercepts(self, state: np.ndarray) -> np.ndarray:
        """Float32 (labels,)."""
        return state[0].copy()


@no_type_check
def _step_one(
    offsets, ids, values, held_offsets, held, order, rate, passed, growth, longest, records, state, share
):
    """One label. The sum is taken over weights that are kept, so that it runs on vectors.

    Threads that share the records may be some blocks apart: a row that another one has brought further than
    this one's S is left there, else it would be shrunk twice. Records are read again before they are written:
    what was kept may be old by then, where the thread had to wait.
    """
    zero, one, rate = np.float32(0), np.float32(1), np.float32(rate)
    kept = np.empty(longest, np.float32)
    start = state[0, 0]
    intercept = start
    for visit in range(len(order)):
        row = order[visit]
        own, value = ids[offsets[row] : offsets[row + 1]], values[offsets[row] : offsets[row + 1]]
        passed_now = np.float32(passed + visit * growth)
        for place in range(len(own)):
            record = records[own[place]]
            pending = max(passed_now - record[1], zero)
            kept[place] = max(record[0] - pending, zero) + min(record[0] + pending, zero)
        margin = intercept
        for place in range(len(own)):
            margin += kept[place] * value[place]
        step = one / (one + np.exp(-margin))
        if held_offsets[row] < held_offsets[row + 1]:
            step -= one
        step *= rate
        for place in range(len(own)):
            record = records[own[place]]
            pending = max(passed_now - record[1], zero)
            shrunk = max(record[0] - pending, zero) + min(record[0] + pending, zero)
            record[0] = shrunk - step * value[place]
            record[1] = max(record[1], passed_now)
        intercept -= share * step
    state[0, 0] += intercept - start  # once a block: threads would contend for it at every sample


@no_type_check
def _step_many(
    offsets, ids, values, held_offsets, held, order, rate, passed, growth, longest, records, state, share
):
    """See ``_step_one``; the inner loops run over labels, as vectors."""
    zero, one, rate = np.float32(0), np.float32(1), np.float32(rate)
    labels = state.shape[1]
    start = state[0].copy()
    intercepts, step = start.copy(), np.empty(labels, np.float32)
    for visit in range(len(order)):
        row = order[visit]
        own, value = ids[offsets[row] : offsets[row + 1]], values[offsets[row] : offsets[row + 1]]
        passed_now = np.float32(passed + visit * growth)
        step[:] = intercepts  # margins first
        for place in range(len(own)):
            record, factor = records[own[place]], value[place]
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
        for place in range(len(own)):
            record, factor = records[own[place]], value[place]
            for label in range(labels):
                record[label] -= step[label] * factor
    for label in range(labels):
        state[0, label] += intercepts[label] - start[label]
