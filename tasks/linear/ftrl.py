"""FTRL-proximal (follow the regularized leader): per-weight learning rates and lazy L1 regularization.

With g the gradient of sample t, n the sum of g² of a weight, and η the learning rate:

    σ = (√(n + g²) − √n) / η    z ← z + g − σ w    n ← n + g²
    w = −soft(z, α t) η / (β + √n),    soft(v, p) = sign(v) max(|v| − p, 0)

σ uses n before the update. A record stores z and √n, from which the weight is computed when it is read, so
samples without the feature require no update.

References:
    McMahan et al. *Ad click prediction: a view from the trenches*. KDD 2013, algorithm 1.
    McMahan. *Follow-the-regularized-leader and mirror descent: equivalence theorems and L1 regularization*.
    AISTATS 2011, section 3.
    We differ: the penalty is α t, cumulative as in the second paper, not constant as in the first. Any number
    of passes therefore approaches the optimum of mean loss + α ‖w‖₁. There is no L2 term.
"""

from typing import Literal, no_type_check

import numpy as np

from tasks.form import configurable, setting
from tasks.linear.proximal import INTERCEPT_RATE


@configurable
class Ftrl:
    """FTRL-proximal. A record is float32 (2 · labels,): z of all labels, then √n of all labels."""

    name: Literal["ftrl"] = "ftrl"
    learning_rate: float = setting(1.0, "η: step of a weight whose squared gradients add up to 1.", gt=0)
    beta: float = setting(0.01, "β: bounds the steps of weights with small gradients so far.", gt=0)

    def record_size(self, labels: int) -> int:
        """Number of values in the record of a feature."""
        return 2 * labels

    def schedule(self, seen: np.ndarray, counts: np.ndarray, alpha: float) -> np.ndarray:
        """Learning rate, initial α t and its growth per sample, for each block: float64 (blocks, 3)."""
        columns = np.broadcast_arrays(self.learning_rate, alpha * seen, alpha)
        return np.stack(columns, axis=1).astype(np.float64)

    def loop(self, labels: int) -> tuple:
        """The function that processes a block, and its constant arguments."""
        return (_step_one if labels == 1 else _step_many), (np.float32(self.beta), np.float32(INTERCEPT_RATE))

    def apply_pending_(self, records: np.ndarray, schedule: np.ndarray, counts: np.ndarray) -> None:
        """Does nothing: the penalty is applied when a weight is read."""

    def weights(self, records: np.ndarray, seen: int, alpha: float) -> np.ndarray:
        """Weights, float32 (features, labels)."""
        return self._leader(records.reshape(len(records), 2, -1), self.learning_rate, alpha * seen)

    def intercepts(self, state: np.ndarray) -> np.ndarray:
        """Intercepts, float32 (labels,); not penalized."""
        return self._leader(state[None], self.learning_rate * INTERCEPT_RATE, 0)[0]

    def _leader(self, records: np.ndarray, rate: float, penalty: float) -> np.ndarray:
        sums, roots = records[:, 0], records[:, 1]
        weights = np.maximum(np.abs(sums) - np.float32(penalty), 0)
        weights *= -np.sign(sums) * np.float32(rate) / (np.float32(self.beta) + roots)
        return weights


@no_type_check
def _step_one(
    offsets,
    ids,
    values,
    held_offsets,
    held,
    order,
    rate,
    passed,
    growth,
    longest,
    records,
    state,
    beta,
    share,
):
    """Processes a block for one label. Records are copied to contiguous buffers to vectorize the sums."""
    zero, one, rate = np.float32(0), np.float32(1), np.float32(rate)
    per_rate, intercept_rate = one / rate, rate * share
    kept, sums, roots = np.empty((3, longest), np.float32)
    first, second = state[0, 0], state[1, 0]
    total, root = first, second
    for visit in range(len(order)):
        row = order[visit]
        features, value = ids[offsets[row] : offsets[row + 1]], values[offsets[row] : offsets[row + 1]]
        penalty = np.float32(passed + visit * growth)
        for place in range(len(features)):
            record = records[features[place]]
            sums[place], roots[place] = record[0], record[1]
        intercept = -total * intercept_rate / (beta + root)
        margin = intercept
        for place in range(len(features)):
            shrunk = max(sums[place] - penalty, zero) + min(sums[place] + penalty, zero)
            kept[place] = -shrunk * rate / (beta + roots[place])
            margin += kept[place] * value[place]
        error = one / (one + np.exp(-margin))
        if held_offsets[row] < held_offsets[row + 1]:
            error -= one
        for place in range(len(features)):
            gradient, root_before = error * value[place], roots[place]
            roots[place] = np.sqrt(root_before * root_before + gradient * gradient) - root_before
            sums[place] = gradient - roots[place] * per_rate * kept[place]
        for place in range(len(features)):
            record = records[features[place]]
            record[0] += sums[place]  # incremental: another thread may have changed it since it was read
            record[1] += roots[place]
        after = np.sqrt(root * root + error * error)
        total += error - (after - root) / intercept_rate * intercept
        root = after
    state[0, 0] += total - first  # once per block, to avoid contention between threads
    state[1, 0] += root - second


@no_type_check
def _step_many(
    offsets,
    ids,
    values,
    held_offsets,
    held,
    order,
    rate,
    passed,
    growth,
    longest,
    records,
    state,
    beta,
    share,
):
    """Processes a block for several labels. The inner loops over labels are vectorized."""
    zero, one, rate = np.float32(0), np.float32(1), np.float32(rate)
    per_rate, intercept_rate, labels = one / rate, rate * share, state.shape[1]
    kept = np.empty((longest, labels), np.float32)
    error, intercepts = np.empty(labels, np.float32), np.empty(labels, np.float32)
    start = state.copy()
    bias = start.copy()
    for visit in range(len(order)):
        row = order[visit]
        features, value = ids[offsets[row] : offsets[row + 1]], values[offsets[row] : offsets[row + 1]]
        penalty = np.float32(passed + visit * growth)
        for label in range(labels):
            intercepts[label] = -bias[0, label] * intercept_rate / (beta + bias[1, label])
            error[label] = intercepts[label]  # margins first
        for place in range(len(features)):
            record, factor, weights = records[features[place]], value[place], kept[place]
            sums, roots = record[:labels], record[labels:]
            for label in range(labels):
                shrunk = max(sums[label] - penalty, zero) + min(sums[label] + penalty, zero)
                weights[label] = -shrunk * rate / (beta + roots[label])
                error[label] += weights[label] * factor
        for label in range(labels):
            error[label] = one / (one + np.exp(-error[label]))
        for place in range(held_offsets[row], held_offsets[row + 1]):
            error[held[place]] -= one
        for place in range(len(features)):
            record, factor, weights = records[features[place]], value[place], kept[place]
            sums, roots = record[:labels], record[labels:]
            for label in range(labels):
                gradient, root = error[label] * factor, roots[label]
                after = np.sqrt(root * root + gradient * gradient)
                sums[label] += gradient - (after - root) * per_rate * weights[label]
                roots[label] = after
        for label in range(labels):
            after = np.sqrt(bias[1, label] * bias[1, label] + error[label] * error[label])
            bias[0, label] += error[label] - (after - bias[1, label]) / intercept_rate * intercepts[label]
            bias[1, label] = after
    for label in range(labels):
        state[0, label] += bias[0, label] - start[0, label]
        state[1, label] += bias[1, label] - start[1, label]
