"""Trains linear SVMs online, one per label, all in the same passes over the samples.

On the samples (x, y) of a call of ``partial_fit``, the SVM of each label, with margin f(x) = w·x + b,
approaches the solution of

    min  ½‖w − w₀‖² + ½(b − b₀)² + C Σ max(0, 1 − y f(x))²,    y = 1 if the sample has the label, else −1

where w₀ and b₀ are the results of the previous call; in the first call, w₀ = 0 and b₀ = −1. The problem is
solved in the dual by coordinate descent over the samples, with dual variables α ≥ 0 that start at 0:

    δ = max(−α, (1 − y f(x) − α / 2C) / (‖x‖² + 1 + 1 / 2C))    α += δ    w += δ y x    b += δ y

The first visit of a sample is the passive-aggressive step (PA-II). Further passes keep α and approach the
optimum of liblinear's LinearSVC. The next call discards α but keeps w and b, so that the model follows
changes of the data over time. A step reads and writes only the rows of the features of its sample; inner
loops run over labels.

A label that no sample has keeps w = 0 and b = −1 and has no loss. Features and labels can therefore be added
at any time, with the same result as if they had existed from the start.

References: Hsieh, Chang, Lin, Keerthi, Sundararajan. *A dual coordinate descent method for large-scale linear
    SVM*. ICML 2008, algorithm 1. Crammer, Dekel, Keshet, Shalev-Shwartz, Singer. *Online passive-aggressive
    algorithms*. JMLR 7, 2006, PA-II.
    We differ: all labels are trained in one loop, b₀ is −1, and the number of passes is fixed.
"""

from pathlib import Path
from typing import Any, Self, no_type_check

import numpy as np

from storage.arrays import Ragged
from storage.formats.linear_model import read_linear_model, write_linear_model
from tasks.compiled import compiled
from tasks.linear.lookup import Lookup
from tasks.linear.sparse import validate_labels, validate_rows

UNTRAINED_INTERCEPT = -1.0  # b₀ of a label before training
COLUMN_MULTIPLE = 32  # columns are padded to a multiple of 32: 128 train 1.6 times as fast as 125


class OnlineSvm:
    """Linear SVMs, one per label, which are trained online on sparse samples.

    Args:
        features: Number of features, or the lookup of their names, which may grow between calls.
        labels: Number of labels, or the lookup of their names.
        cost: C, the weight of a violated margin.
        epochs: Passes over the samples in each call of ``partial_fit``.
        seed: Seed of the order in which a pass visits the samples.

    Raises:
        ValueError: ``cost`` or ``epochs`` is out of range.
    """

    def __init__(
        self,
        features: Lookup | int,
        labels: Lookup | int = 1,
        *,
        cost: float = 0.2,
        epochs: int = 4,
        seed: int = 0,
    ) -> None:
        if not cost > 0 or epochs < 1:
            raise ValueError(f"cost must be more than 0 and epochs at least 1, got {cost} and {epochs}")
        self.features, self.labels = features, labels
        self.cost, self.epochs, self.seed = cost, epochs, seed
        self.seen = 0  # number of samples in all calls
        # The arrays may have more rows and columns than there are features and labels.
        self._weights = np.zeros((0, 0), dtype=np.float32)
        self._intercepts = np.zeros(0, dtype=np.float32)
        self._grow()

    @property
    def weights(self) -> np.ndarray:
        """Weights of the features, float32 (features, labels); a view."""
        return self._weights[: _count_of(self.features), : _count_of(self.labels)]

    @property
    def intercepts(self) -> np.ndarray:
        """Intercepts of the margins, float32 (labels,); a view."""
        return self._intercepts[: _count_of(self.labels)]

    def partial_fit(self, rows: Any, labels: Ragged) -> Self:
        """Trains on samples, starting from the results of earlier calls.

        Args:
            rows: scipy CSR matrix (samples, features).
            labels: Label ids of each sample.

        Raises:
            ValueError: A value is not finite or an id is out of range; the model is unchanged.
        """
        self._grow()
        samples = validate_rows(rows, _count_of(self.features))
        label_arrays = validate_labels(labels, rows.shape[0], _count_of(self.labels))
        count, width = rows.shape[0], _padded_count(_count_of(self.labels))
        duals = np.empty((count if self.epochs > 1 else 1, width), dtype=np.float32)
        rng, train_pass = np.random.default_rng((self.seed, self.seen)), compiled(_train_pass)
        intercepts, slack = self._intercepts[:width], np.float32(1 / (2 * self.cost))
        for epoch in range(self.epochs):
            order = rng.permutation(count)
            train_pass(samples, label_arrays, order, duals, epoch == 0, self._weights, intercepts, slack)
        self.seen += count
        return self

    def decision_function(self, rows: Any) -> np.ndarray:
        """Returns the margins w·x + b of samples, float32 (samples, labels)."""
        self._grow()
        samples, width = validate_rows(rows, _count_of(self.features)), _padded_count(_count_of(self.labels))
        margins = np.empty((rows.shape[0], width), dtype=np.float32)
        compiled(_compute_margins)(samples, self._weights, self._intercepts[:width], margins)
        return np.ascontiguousarray(margins[:, : _count_of(self.labels)])

    def save(self, folder: Path) -> None:
        """Writes the model with the names of features and labels (``storage/formats/linear_model.py``)."""
        self._grow()
        lookups = {"features": self.features, "labels": self.labels}
        names = {name: list(lookup) for name, lookup in lookups.items() if isinstance(lookup, Lookup)}
        settings = {name: getattr(self, name) for name in ("cost", "epochs", "seed", "seen")}
        arrays = {"weights": self.weights, "intercepts": self.intercepts}
        write_linear_model(folder, type(self).__name__, arrays, names, settings)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Loads a saved model, which can continue training where the saved model stopped."""
        files = read_linear_model(folder, cls.__name__)
        seen, weights = files.settings.pop("seen"), files.arrays["weights"]
        sizes = zip(("features", "labels"), weights.shape, strict=True)
        model = cls(
            **{name: Lookup(files.names[name]) if name in files.names else count for name, count in sizes},
            **files.settings,
        )
        model.seen = seen
        model.weights[:], model.intercepts[:] = weights, files.arrays["intercepts"]
        return model

    def _grow(self) -> None:
        """Enlarges the arrays for new features and labels. A dimension that grows is at least doubled."""
        required_shape = _count_of(self.features), _padded_count(_count_of(self.labels))
        old_shape = self._weights.shape
        if required_shape[0] <= old_shape[0] and required_shape[1] <= old_shape[1]:
            return
        rows, columns = (
            size if required <= size else max(required, 2 * size)
            for required, size in zip(required_shape, old_shape, strict=True)
        )
        weights = np.zeros((rows, columns), np.float32)
        intercepts = np.full(columns, UNTRAINED_INTERCEPT, np.float32)
        weights[: old_shape[0], : old_shape[1]], intercepts[: old_shape[1]] = self._weights, self._intercepts
        self._weights, self._intercepts = weights, intercepts


def _count_of(names: Lookup | int) -> int:
    return len(names) if isinstance(names, Lookup) else names


def _padded_count(labels: int) -> int:
    """Returns the number of columns for ``labels`` labels. Unused columns keep w = 0 and b = −1."""
    return labels if labels < COLUMN_MULTIPLE // 2 else -(-labels // COLUMN_MULTIPLE) * COLUMN_MULTIPLE


@no_type_check
def _train_pass(samples, labels, order, duals, is_first, weights, intercepts, slack):
    """Trains for one pass over the samples, in the order of the sample numbers ``order``; slack is 1 / 2C."""
    offsets, ids, values = samples
    label_offsets, label_ids = labels
    zero, one = np.float32(0), np.float32(1)
    step, signs = np.empty_like(intercepts), np.empty_like(intercepts)
    width = len(intercepts)
    for row in order:
        begin, end = offsets[row], offsets[row + 1]
        step[:] = intercepts  # holds the margins at first, then the changes
        squared_norm = one
        for index in range(begin, end):
            value, row_weights = values[index], weights[ids[index]]
            squared_norm += value * value
            for label in range(width):
                step[label] += value * row_weights[label]
        signs[:] = -one
        for index in range(label_offsets[row], label_offsets[row + 1]):
            signs[label_ids[index]] = one
        dual = duals[row % len(duals)]
        if is_first:
            dual[:] = zero
        scale, has_changed = one / (squared_norm + slack), False
        for label in range(width):
            step_to_optimum = (one - signs[label] * step[label] - slack * dual[label]) * scale
            change = max(step_to_optimum, -dual[label])
            dual[label] += change
            step[label] = change * signs[label]
            intercepts[label] += step[label]
            has_changed |= change != zero
        if has_changed:
            for index in range(begin, end):
                value, row_weights = values[index], weights[ids[index]]
                for label in range(width):
                    row_weights[label] += value * step[label]


@no_type_check
def _compute_margins(samples, weights, intercepts, margins):
    offsets, ids, values = samples
    for row in range(len(margins)):
        sums = margins[row]
        sums[:] = intercepts
        for index in range(offsets[row], offsets[row + 1]):
            value, row_weights = values[index], weights[ids[index]]
            for label in range(len(intercepts)):
                sums[label] += value * row_weights[label]
