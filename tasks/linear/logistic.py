"""Trains an L1-regularized logistic regression per label, online, by threads without locks.

For each label, with margin f(x) = w·x + b and y = 1 if the sample has the label, else −1, it minimizes

    mean over samples of log(1 + exp(−y f(x))) + α ‖w‖₁

like scikit-learn's LogisticRegression with C = 1 / (α · samples). The intercept b is not penalized. There are
two solvers: FTRL-proximal (``ftrl.py``), which comes within .001 of the optimum, and proximal SGD
(``proximal.py``). Both update only the weights of the features of a sample. The penalty on other weights is
applied when they are next read. The time of a pass is therefore proportional to the number of stored values,
not of features.

Threads share weights without locks (``threads.py``), so updates may occasionally be lost. With one thread the
result is bitwise reproducible.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np

from storage.arrays import Ragged
from storage.formats.linear_model import read_linear_model, write_linear_model
from tasks.compiled import compiled
from tasks.linear.ftrl import Ftrl
from tasks.linear.logistic_steps import INTERCEPT_RATE, train_several_labels, train_single_label
from tasks.linear.proximal import ProximalSgd
from tasks.linear.sparse import validate_labels, validate_rows
from tasks.linear.threads import run_merged, run_shared

KIND = "L1 logistic regression"
CHUNK = 32  # consecutive samples that stay together in the random order
BLOCK = 1024  # samples that a thread processes at once
MIN_SHARED_LABELS = 16  # with fewer labels, records are shorter than two cache lines and are not shared
FREQUENCY_SAMPLES = 2048  # samples from which the mean squared values of features are estimated
Solver = Ftrl | ProximalSgd
_SOLVERS = {solver.name: solver for solver in (Ftrl, ProximalSgd)}


class SparseLogistic:
    """Logistic regressions with an L1 penalty, one per label, on sparse samples.

    Args:
        features: Number of features.
        labels: Number of labels; a binary problem has one.
        alpha: α, the weight of ‖w‖₁ in the objective.
        solver: Update rule; default FTRL-proximal.
        epochs: Passes over the samples in each call of ``partial_fit``.
        seed: Seed of the order in which a pass visits samples.
        threads: Number of threads that share the weights.

    Raises:
        ValueError: An argument is out of range.
    """

    def __init__(
        self,
        features: int,
        labels: int = 1,
        *,
        alpha: float = 1e-5,
        solver: Solver | None = None,
        epochs: int = 1,
        seed: int = 0,
        threads: int = 1,
    ) -> None:
        if not alpha >= 0 or min(epochs, threads, labels) < 1:
            raise ValueError(
                f"alpha must be at least 0, epochs, threads and labels at least 1, got alpha={alpha}, "
                f"epochs={epochs}, threads={threads}, labels={labels}"
            )
        self.features, self.labels, self.alpha = features, labels, alpha
        self.solver, self.epochs, self.seed, self.threads = solver or Ftrl(), epochs, seed, threads
        self.seen = 0  # number of samples in all passes so far
        self._records = np.zeros((features, self.solver.record_size(labels)), dtype=np.float32)
        self._state = np.zeros((2, labels), dtype=np.float32)  # state of the intercepts
        self._weights: np.ndarray | None = None  # cached weights; the solver may add columns after the labels

    @property
    def weights(self) -> np.ndarray:
        """Weights of the features, float32 (features, labels); most weights are 0. A view."""
        return self._solver_weights()[:, : self.labels]

    def _solver_weights(self) -> np.ndarray:
        if self._weights is None:
            self._weights = self.solver.weights(self._records, self.seen, self.alpha)
        return self._weights

    @property
    def intercepts(self) -> np.ndarray:
        """Intercept of the margin of each label, float32 (labels,)."""
        return self.solver.intercepts(self._state)

    def partial_fit(self, rows: Any, labels: Ragged) -> Self:
        """Continues training on further samples.

        Args:
            rows: scipy CSR matrix (samples, features).
            labels: Label ids of each sample.

        Raises:
            ValueError: A value is not finite or an id is out of range; the model is unchanged.
        """
        offsets, ids, values = validate_rows(rows, self.features)
        label_arrays = validate_labels(labels, rows.shape[0], self.labels)
        if not (count := rows.shape[0]):
            return self
        rng = np.random.default_rng((self.seed, self.seen))
        orders = [visiting_order(count, rng) for _ in range(self.epochs)]
        loop = train_single_label if self.labels == 1 else train_several_labels
        train, max_length = compiled(loop, fastmath=True), int(np.diff(offsets).max())
        beta = np.float32(self.solver.beta) if isinstance(self.solver, Ftrl) else None
        # Ids are unsigned, so that numba omits the check for negative indices.
        samples = (offsets.view(np.uint64), ids.view(np.uint32), values, *label_arrays)
        if self.threads > 1 and self.labels < MIN_SHARED_LABELS and isinstance(self.solver, Ftrl):
            rate = self.solver.learning_rate

            def train_part(
                part: np.ndarray, previous_samples: int, threads: int, copies: Sequence[np.ndarray]
            ) -> None:
                records, state = copies[0].reshape(self._records.shape), copies[1].reshape(self._state.shape)
                threshold = self.alpha * (self.seen + previous_samples)
                train(samples, part, rate, threshold, self.alpha * threads, max_length, records, state, beta)

            sample_rows = orders[0][:FREQUENCY_SAMPLES]  # all rows would take a fifth of the time of a pass
            sampled_ids, sampled_values = (
                Ragged(offsets, array).take(sample_rows).values for array in (ids, values)
            )
            squares = np.bincount(sampled_ids, sampled_values**2, self.features) / len(sample_rows)
            # For the features and for the intercept.
            scaled_curvatures = rate * squares, np.array([rate * INTERCEPT_RATE])
            shared = self._records.reshape(self.features, 2, self.labels), self._state[None]
            run_merged(self.threads, np.concatenate(orders), scaled_curvatures, train_part, shared)
        else:
            blocks = [order[begin : begin + BLOCK] for order in orders for begin in range(0, count, BLOCK)]
            counts = np.array([len(block) for block in blocks])
            schedule = self.solver.schedule(self.seen + np.cumsum(counts) - counts, counts, self.alpha)

            def train_block(turn: int) -> None:
                rate, threshold, growth = schedule[turn].tolist()
                records, state = self._records, self._state
                train(samples, blocks[turn], rate, threshold, growth, max_length, records, state, beta)

            run_shared(self.threads, len(blocks), train_block)
            self.solver.apply_pending_(self._records, schedule, counts)
        self.seen, self._weights = self.seen + count * self.epochs, None
        return self

    def decision_function(self, rows: Any) -> np.ndarray:
        """Returns the margins w·x + b of samples, float32 (samples, labels)."""
        validate_rows(rows, self.features)
        # SciPy would copy a view: 1.2 GB for a million features and 300 labels.
        margins = (rows.astype(np.float32) @ self._solver_weights()[: rows.shape[1]])[:, : self.labels]
        return np.asarray(margins + self.intercepts, dtype=np.float32)

    def save(self, folder: Path) -> None:
        """Writes the model with the state of its solver to a folder (``storage/formats/linear_model.py``)."""
        names = ("features", "labels", "alpha", "epochs", "seed", "threads", "seen")
        settings = {name: getattr(self, name) for name in names} | {"solver": asdict(self.solver)}
        write_linear_model(folder, KIND, {"records": self._records, "intercepts": self._state}, {}, settings)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Loads a saved model, which can continue training where the saved model stopped."""
        files = read_linear_model(folder, KIND)
        settings = dict(files.settings)
        seen, solver = settings.pop("seen"), settings.pop("solver")
        model = cls(**settings, solver=_SOLVERS[solver["name"]](**solver))
        model.seen = seen
        model._records[:], model._state[:] = files.arrays["records"], files.arrays["intercepts"]
        return model


def visiting_order(count: int, rng: np.random.Generator) -> np.ndarray:
    """Returns all sample numbers, int64 (count,), in chunks of consecutive samples in random order.

    If the order of single samples were random, every sample would wait for memory. On 100,000 samples of 72
    values, a pass takes .2 µs per sample with chunks of 32, .3 µs with chunks of 8, and .73 µs with single
    samples.
    """
    order = (rng.permutation(-(-count // CHUNK))[:, None] * CHUNK + np.arange(CHUNK)).ravel()
    return order[order < count]
