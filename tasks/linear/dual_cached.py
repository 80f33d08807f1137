"""Linear SVM over more samples than fit in memory, by dual cached loops.

    minimise over w   ½‖w‖² + C Σ max(0, 1 − y_i wᵀx_i),   x_i followed by a 1 whose weight is the intercept

as liblinear's L1-loss SVM. A thread reads the samples from disk without end; meanwhile dual coordinate
descent goes on over those that memory holds. The dual has one variable α_i for each sample, which stays in
memory when the sample leaves, and w = Σ α_i y_i x_i at any time: a sample visited more often, because it
stayed longer, is nearer to its optimum, and weighs no more than another. So what is held may be chosen
freely: samples whose gradient holds α_i firmest at 0 or C leave first, and come again when they are read
anew.

Each pass over the disk sums the losses of all samples under the weights w₀ that it began with. So
primal(w₀) is known without a pass of its own, and primal(w₀) − dual(α) bounds what w₀ is short of the
optimum. The solution is the w₀ of the least primal, once that bound is within the tolerance.

References:
    Matsushima, Vishwanathan, Smola. Linear Support Vector Machines via Dual Cached Loops. KDD 2012.
    Hsieh, Chang, Lin, Keerthi, Sundararajan. A Dual Coordinate Descent Method for Large-scale Linear SVM.
    ICML 2008.

We differ: a sample leaves when its place is needed, not by a threshold of its gradient; such a threshold, as
in liblinear's shrinking, gained nothing. The bound on the optimum is ours.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix

from storage.artifacts import Progress
from storage.formats.linear_model import read_linear_model, write_linear_model
from tasks.linear.blocks import AHEAD, SampleBlocks
from tasks.linear.dual_steps import SampleCache, rows_of, visit
from tasks.linear.sparse import checked_rows

KIND = "dual_cached_svm"
AT_LEAST = (
    2  # cached values visited for each one read: without, a disk faster than the trainer takes all its time
)


class DualCachedSVM:
    """Hinge loss; binary.

    Attributes:
        cost: C.
        alphas: float32 (samples,), 0 to C.
        gap: Bound on what the best weights of all passes are short of the optimum, relative to their primal
            objective; infinite before the first pass has ended.
        weights: float32 (features, 1); those of the least gap once ``fit`` has reached its tolerance, before
            that the current ones.
        intercepts: float32 (1,).
    """

    def __init__(self, cost: float = 1.0) -> None:
        if not (np.isfinite(cost) and cost > 0):
            raise ValueError(f"cost is {cost}; give a number above 0")
        self.cost = cost
        self.gap = np.inf
        self.alphas = np.zeros(0, dtype=np.float32)
        self._weights = np.zeros(1)  # float64: the sum of Δα y x over all visits; the intercept is last
        self._solution = self._weights
        self._file: int | None = None

    @property
    def weights(self) -> np.ndarray:
        """float32 (features, 1)."""
        return self._solution[:-1, None].astype(np.float32)

    @property
    def intercepts(self) -> np.ndarray:
        """float32 (1,)."""
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
        """Trains on, from where the model is, until the relative duality gap is at most ``tolerance``.

        How often cached samples are visited depends on how long the disk takes: two runs agree to the
        tolerance, not in their bits. The model may be used, saved or left after any step.

        Args:
            blocks: The samples; always the same file for one model.
            cache_bytes: Memory for samples, with the blocks that the reader is ahead by. Five bytes for each
                sample of the file come on top, and 24 for each feature.
            tolerance: Of (primal − dual) / primal.
            passes: Most passes over the disk.
            seed: Of the orders in which rows are visited.

        Yields:
            Progress for each block: "dual"; and at the end of a pass "primal", under the weights that it
            began with, and "gap".
        """
        self._join(blocks)
        rest = cache_bytes - (AHEAD + 1) * blocks.largest
        if rest < 0:
            problem = (
                f"cache_bytes is {cache_bytes:,}; {AHEAD + 1} blocks of {blocks.largest:,} bytes are held"
            )
            raise ValueError(f"{problem}. Give more, or write the samples in smaller blocks.")
        rng = np.random.default_rng(seed)
        cache = SampleCache(rest, blocks.samples, blocks.values, rng)
        self.gap, self._solution = np.inf, self._weights
        primal, best = np.inf, self._weights
        model = self.alphas, self._weights, np.float32(self.cost)
        total, loss, begun = float(self.alphas.sum(dtype=np.float64)), 0.0, self._weights
        with blocks.stream() as stream:
            for step in range(1, passes * len(blocks) + 1):
                block = next(stream)
                if block.number == 0:
                    begun, loss = self._weights.copy(), 0.0
                rows, losses = rows_of(block, begun)
                loss += losses
                order = rng.permutation(np.flatnonzero(~cache.holds[rows.samples]))
                change, violation = visit(rows, order, *model)
                total += change
                cache.add(rows, violation)
                metrics = {"dual": total - float(self._weights @ self._weights) / 2}
                if block.number == len(blocks) - 1:
                    metrics["primal"] = float(begun @ begun) / 2 + float(model[2]) * loss
                    if metrics["primal"] < primal:
                        primal, best = metrics["primal"], begun
                    self.gap = metrics["gap"] = (primal - metrics["dual"]) / primal
                    if self.gap <= tolerance:
                        self._solution = best
                yield Progress(step, passes * len(blocks), metrics)
                if self.gap <= tolerance:
                    return
                done = 0
                while (
                    (done < AT_LEAST or not stream.ready) and cache.count and cache.violation > tolerance / 4
                ):
                    total += cache.sweep(len(block.ids), *model)
                    done += 1

    def decision_function(self, rows: Any) -> np.ndarray:
        """float32 (rows, 1) of a scipy CSR matrix; above 0 where the label is predicted."""
        features = len(self._solution) - 1
        offsets, ids, values = checked_rows(rows, features)
        matrix = csr_matrix((values, ids, offsets), shape=(len(offsets) - 1, features))
        return (matrix @ self._solution[:-1] + self._solution[-1]).astype(np.float32)[:, None]

    def save(self, folder: Path) -> None:
        """Replaces the folder; a loaded model trains on from where this one is."""
        arrays = {"alphas": self.alphas, "sums": self._weights, "solution": self._solution}
        settings = {"cost": self.cost, "file": self._file}
        write_linear_model(folder, KIND, arrays, {}, settings)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """What ``save`` wrote."""
        files = read_linear_model(folder, KIND)
        model = cls(files.settings["cost"])
        model.alphas, model._weights = files.arrays["alphas"], files.arrays["sums"]
        model._solution = files.arrays["solution"]
        model._file = files.settings["file"]
        return model

    def _join(self, blocks: SampleBlocks) -> None:
        if self._file is None:
            self.alphas = np.zeros(blocks.samples, dtype=np.float32)
            self._weights = np.zeros(blocks.features + 1)
            self._file = blocks.digest
        elif self._file != blocks.digest:
            problem = f"{blocks.file} is not the file that this model has seen ({len(self.alphas)} samples)"
            raise ValueError(f"{problem}. Its α belong to that file; train a new model.")
