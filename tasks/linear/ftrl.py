"""Updates weights by FTRL-proximal (follow the regularized leader) with lazy L1 regularization.

Let w be a weight, g its gradient at sample t, n the sum of g² over the earlier samples, η the learning rate,
and α the factor of ‖w‖₁ in the objective. The update of w is

    σ = (√(n + g²) − √n) / η    z ← z + g − σ w    n ← n + g²
    w = −soft(z, α t) η / (β + √n),    soft(v, p) = sign(v) max(|v| − p, 0)

The record of a feature stores z and √n, from which w is computed when the record is read. Therefore, a sample
causes no work for features that it lacks.

References:
    McMahan et al. *Ad click prediction: a view from the trenches*. KDD 2013, algorithm 1.
    McMahan. *Follow-the-regularized-leader and mirror descent: equivalence theorems and L1 regularization*.
    AISTATS 2011, section 3.
    We differ: the penalty α t grows with t as in the second paper, and is not constant as in the first.
    Therefore, w approaches the minimum of mean loss + α ‖w‖₁ for any number of passes. There is no L2 term.
"""

from typing import Literal

import numpy as np

from tasks.form import configurable, setting
from tasks.linear.logistic_steps import INTERCEPT_RATE


@configurable
class Ftrl:
    """Solver FTRL-proximal. The record of a feature contains z and √n for each label."""

    name: Literal["ftrl"] = "ftrl"
    learning_rate: float = setting(
        1.0, "η: learning rate of a weight whose squared gradients sum to 1.", gt=0
    )
    beta: float = setting(
        0.01, "β: limits the learning rate of weights whose gradients have been small.", gt=0
    )

    def record_size(self, labels: int) -> int:
        """Returns the number of values that are stored for each feature."""
        return 2 * labels

    def schedule(self, seen: np.ndarray, counts: np.ndarray, alpha: float) -> np.ndarray:
        """Returns, for each block of samples, the learning rate, α t before the block, and α: (blocks, 3).

        Args:
            seen: Number of samples that were visited before each block.
            counts: Number of samples of each block.
            alpha: α, the weight of the L1 penalty.
        """
        columns = np.broadcast_arrays(self.learning_rate, alpha * seen, alpha)
        return np.stack(columns, axis=1).astype(np.float64)

    def apply_pending_(self, records: np.ndarray, schedule: np.ndarray, counts: np.ndarray) -> None:
        """Does nothing: the penalty is applied when a weight is read."""

    def weights(self, records: np.ndarray, seen: int, alpha: float) -> np.ndarray:
        """Computes the weights from the records after ``seen`` samples, float32 (features, labels)."""
        return self._compute_weights(records.reshape(len(records), 2, -1), self.learning_rate, alpha * seen)

    def intercepts(self, state: np.ndarray) -> np.ndarray:
        """Computes the intercepts, which are not penalized, float32 (labels,)."""
        return self._compute_weights(state[None], self.learning_rate * INTERCEPT_RATE, 0)[0]

    def _compute_weights(self, records: np.ndarray, rate: float, penalty: float) -> np.ndarray:
        sums, roots = records[:, 0], records[:, 1]
        weights = np.maximum(np.abs(sums) - np.float32(penalty), 0)
        weights *= -np.sign(sums) * np.float32(rate) / (np.float32(self.beta) + roots)
        return weights
