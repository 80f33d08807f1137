"""Trains a linear SVM on more samples than fit in memory, by dual cached loops.

    minimise over w   ½‖w − w₀‖² + C Σ loss(1 − y_i wᵀx_i)

The loss of a margin violation v is the hinge loss max(0, v), as in liblinear's L1-loss SVM, or its square, as
in ``svm.py``. Each x_i ends with an additional 1, so the last entry of w is the intercept b. The entries of
w₀ are 0, except for the last entry, the intercept b₀.

A thread reads the samples from disk cyclically, and meanwhile dual coordinate descent visits the cached
samples. The dual has one variable α_i per sample, and w = w₀ + Σ α_i y_i x_i holds at any time. If a sample
is evicted from the cache, its α_i stays in memory. Visiting a sample more often brings α_i closer to the
optimum but does not give the sample more weight, so any eviction rule is correct. Samples whose α_i is at
a bound are evicted, beginning with the samples whose gradient pushes α_i most strongly against its bound.

Let v be the weights at the beginning of a pass over the disk. The pass sums the losses of all samples at v,
which gives the objective primal(v). primal(v) − dual(α) bounds the suboptimality of v. Training ends when
this bound is within the tolerance, and the solution is the v with the smallest objective.

    dual(α) = Σ (α_i − D α_i² / 2) − b₀ (b − b₀) − ½‖w − w₀‖²,   D = 1 / 2C for the squared loss, else 0

References: Matsushima, Vishwanathan, Smola. Linear Support Vector Machines via Dual Cached Loops. KDD 2012.
    Hsieh, Chang, Lin, Keerthi, Sundararajan. A Dual Coordinate Descent Method for Large-scale Linear SVM.
    ICML 2008.

We differ: a sample is evicted when its space is needed, not when its gradient exceeds a threshold as in
liblinear's shrinking. The bound on the suboptimality is not in the papers.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix

from storage.artifacts import Progress
from storage.formats.linear_model import read_linear_model, write_linear_model
from tasks.linear.blocks import PREFETCH_BLOCKS, BlockStream, SampleBlocks
from tasks.linear.dual_loops import DualState
from tasks.linear.sample_cache import SampleCache, load_rows
from tasks.linear.sparse import validate_rows

KIND = "dual_cached_svm"
MIN_SWEEPS = 2  # minimum number of sweeps over cached samples for each block that is read


class DualCachedSVM:
    """Binary linear SVM that is trained by dual cached loops.

    Attributes:
        cost: C, the weight of the losses.
        squared: Whether the hinge loss is squared.
        prior: b₀, the intercept before training.
        alphas: Dual variables, float32 (samples,), at least 0; with the hinge loss, at most C.
        gap: Relative duality gap of the best weights of all passes; infinite before the first pass ends.
        weights: float32 (features, 1): the weights with the smallest gap if ``fit`` has reached its
            tolerance, else the current weights.
        intercepts: Intercept that belongs to ``weights``, float32 (1,).
    """

    def __init__(self, cost: float = 1.0, *, squared: bool = False, prior: float = 0.0) -> None:
        if not (np.isfinite(cost) and cost > 0):
            raise ValueError(f"cost is {cost}; expected a number above 0")
        self.cost, self.squared, self.prior = cost, squared, prior
        self.gap = np.inf
        self.alphas = np.zeros(0, dtype=np.float32)
        self._weights = np.zeros(1)  # float64, w₀ + Σ Δα y x over all visits; the last entry is the intercept
        self._solution = self._weights
        self._digest: int | None = None  # of the samples on which the model was trained

    @property
    def weights(self) -> np.ndarray:
        """Weights of the features, float32 (features, 1)."""
        return self._solution[:-1, None].astype(np.float32)

    @property
    def intercepts(self) -> np.ndarray:
        """Intercept of the margin, float32 (1,)."""
        return self._solution[-1:].astype(np.float32)

    def fit(
        self,
        blocks: SampleBlocks,
        *,
        cache_bytes: int,
        tolerance: float = 1e-3,
        passes: int = 100,
        seed: int = 0,
    ) -> Iterator[Progress]:
        """Continues training until the relative duality gap is at most ``tolerance``.

        The number of visits of cached samples depends on the speed of the disk. Therefore, the results of two
        runs agree within the tolerance, not bitwise. The model can be used or saved after any step.

        Args:
            blocks: The samples. They must be the same in all calls for a model.
            cache_bytes: Memory for cached samples and prefetched blocks. In addition, training takes 5 bytes
                per sample in the file and 24 bytes per feature.
            tolerance: Maximum of (primal − dual) / primal.
            passes: Maximum number of passes over the file.
            seed: Seed of the order in which rows are visited.

        Yields:
            Progress after each block, with the dual objective as the metric "dual". At the end of a pass, it
            also has "primal", the objective at the weights with which the pass began, and "gap".

        Raises:
            ValueError: ``cache_bytes`` is too small, or the model was trained on another file.
        """
        self._bind_samples(blocks)
        rng = np.random.default_rng(seed)
        cache = _allocate_cache(blocks, cache_bytes, rng)
        self.gap, self._solution = np.inf, self._weights
        primal, best_weights = np.inf, self._weights
        diagonal, upper = (0.5 / self.cost, np.inf) if self.squared else (0.0, self.cost)
        state = DualState(self.alphas, self._weights, np.float32(diagonal), np.float32(upper))
        dual_sum = float((self.alphas - diagonal / 2 * self.alphas.astype(np.float64) ** 2).sum())
        pass_loss, start_weights = 0.0, self._weights
        with BlockStream(blocks) as stream:
            for step in range(1, passes * len(blocks) + 1):
                block = next(stream)
                if block.number == 0:
                    start_weights, pass_loss = self._weights.copy(), 0.0
                rows, block_loss = load_rows(block, start_weights, self.squared)
                pass_loss += block_loss
                dual_sum += cache.visit_new(rows, state)
                metrics = {"dual": (dual := self._dual(dual_sum))}
                if block.number == len(blocks) - 1:
                    pass_primal = self._primal(start_weights, pass_loss)
                    if pass_primal < primal:
                        primal, best_weights = pass_primal, start_weights
                    self.gap = (primal - dual) / primal
                    metrics |= {"primal": pass_primal, "gap": self.gap}
                    if self.gap <= tolerance:
                        self._solution = best_weights
                yield Progress(step, passes * len(blocks), metrics)
                if self.gap <= tolerance:
                    return
                dual_sum += _sweep_cache(cache, stream, len(block.ids), tolerance / 4, state)

    def decision_function(self, rows: Any) -> np.ndarray:
        """Returns the margins of a scipy CSR matrix, float32 (rows, 1): above 0 if the label is predicted."""
        features = len(self._solution) - 1
        offsets, ids, values = validate_rows(rows, features)
        matrix = csr_matrix((values, ids, offsets), shape=(len(offsets) - 1, features))
        return (matrix @ self._solution[:-1] + self._solution[-1]).astype(np.float32)[:, None]

    def save(self, folder: Path) -> None:
        """Writes the model to a folder, which is replaced. A loaded model can continue training."""
        arrays = {"alphas": self.alphas, "sums": self._weights, "solution": self._solution}
        settings = {"cost": self.cost, "squared": self.squared, "prior": self.prior, "file": self._digest}
        write_linear_model(folder, KIND, arrays, {}, settings)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Loads a model that ``save`` has written."""
        files = read_linear_model(folder, KIND)
        settings = dict(files.settings)
        digest = settings.pop("file")
        model = cls(**settings)
        model.alphas, model._weights = files.arrays["alphas"], files.arrays["sums"]
        model._solution, model._digest = files.arrays["solution"], digest
        return model

    def _primal(self, weights: np.ndarray, loss: float) -> float:
        """Computes the objective at ``weights``, at which the losses of all samples sum to ``loss``."""
        return self._squared_norm(weights) / 2 + float(np.float32(self.cost)) * loss

    def _dual(self, dual_sum: float) -> float:
        """Computes the dual objective. ``dual_sum`` is Σ (α − ½Dα²)."""
        intercept_change = self._weights[-1] - self.prior
        return dual_sum - self.prior * intercept_change - self._squared_norm(self._weights) / 2

    def _squared_norm(self, weights: np.ndarray) -> float:
        """Computes ‖w − w₀‖²."""
        return float(weights[:-1] @ weights[:-1]) + float(weights[-1] - self.prior) ** 2

    def _bind_samples(self, blocks: SampleBlocks) -> None:
        """Allocates a dual variable per sample, or checks that earlier calls had the same samples."""
        if self._digest is None:
            self.alphas = np.zeros(blocks.samples, dtype=np.float32)
            self._weights = np.append(np.zeros(blocks.features), self.prior)
            self._digest = blocks.digest
        elif self._digest != blocks.digest:
            raise ValueError(
                f"{blocks.file} is not the file that this model was trained on ({len(self.alphas)} "
                "samples). Train a new model."
            )


def _allocate_cache(blocks: SampleBlocks, cache_bytes: int, rng: np.random.Generator) -> SampleCache:
    size = cache_bytes - (PREFETCH_BLOCKS + 1) * blocks.largest
    if size < 0:
        raise ValueError(
            f"cache_bytes is {cache_bytes:,}, less than {PREFETCH_BLOCKS + 1} blocks of "
            f"{blocks.largest:,} bytes. Increase it, or write smaller blocks."
        )
    return SampleCache(size, blocks.samples, blocks.values, rng)


def _sweep_cache(
    cache: SampleCache, stream: BlockStream, values_per_sweep: int, tolerance: float, state: DualState
) -> float:
    """Performs dual steps on cached rows until the next block has been read.

    Returns the change of Σ (α − ½Dα²).
    """
    change, sweeps = 0.0, 0
    while (sweeps < MIN_SWEEPS or not stream.ready) and cache.count and cache.violation > tolerance:
        change += cache.sweep(values_per_sweep, state)
        sweeps += 1
    return change
