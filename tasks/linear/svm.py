"""A linear SVM per label, learnt online: one pass over the samples moves the machines of all labels.

Of the samples x, y of one call, the machine of each label, of margin f(x) = w·x + b, approaches

    min  ½‖w − w₀‖² + ½(b − b₀)² + C Σ max(0, 1 − y f(x))²,    y = 1 where the sample holds the label, else −1

from what earlier calls left, w₀ and b₀; at first w₀ = 0 and b₀ = −1. It is solved in the dual, by coordinate
descent over samples with their dual variables α ≥ 0, at first 0:

    δ = max(−α, (1 − y f(x) − α / 2C) / (‖x‖² + 1 + 1 / 2C))    α += δ    w += δ y x    b += δ y

The first pass over a sample is the passive-aggressive step (PA-II); further passes remember α and approach
the optimum that liblinear's LinearSVC finds. The next call forgets α and keeps w and b, so that a stream of
calls follows drift. Only the rows of a sample's features are read or moved; inner loops run over labels.

A label that no sample holds keeps w = 0 and b = −1, at no loss. So a feature or label may be added at any
time: the model is what it would be had it been there from the start.

References:
    Hsieh, Chang, Lin, Keerthi, Sundararajan. *A dual coordinate descent method for large-scale linear SVM*.
    ICML 2008, algorithm 1. Crammer, Dekel, Keshet, Shalev-Shwartz, Singer. *Online passive-aggressive
    algorithms*. JMLR 7, 2006, PA-II.
    We differ: all labels in one loop, b₀ = −1, and a fixed number of passes.
"""

from pathlib import Path
from typing import Any, Self, no_type_check

import numpy as np

from storage.arrays import Ragged
from storage.formats.linear_model import read_linear_model, write_linear_model
from tasks.compiled import compiled
from tasks.linear.lookup import Lookup
from tasks.linear.sparse import checked_labels, checked_rows

VECTOR = 32  # labels that a compiled loop takes at a time: 128 columns learn 1.6 times as fast as 125


class OnlineSvm:
    """One linear SVM a label: see the module.

    Args:
        features: Their lookup, which may grow between calls, or how many there are.
        labels: The same of labels.
        cost: C, the price of a violated margin.
        epochs: Passes over the samples of each call of ``partial_fit``.
        seed: Of the order in which a pass visits them.
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
        self.seen = 0  # samples, of all calls
        self._weights = np.zeros((0, 0), dtype=np.float32)  # with room to grow
        self._intercepts = np.zeros(0, dtype=np.float32)
        self._grow()

    @property
    def weights(self) -> np.ndarray:
        """Float32 (features, labels), a view."""
        return self._weights[: _count(self.features), : _count(self.labels)]

    @property
    def intercepts(self) -> np.ndarray:
        """Float32 (labels,), a view."""
        return self._intercepts[: _count(self.labels)]

    def partial_fit(self, rows: Any, labels: Ragged) -> Self:
        """Learns from samples, a scipy CSR matrix (samples, features), and the ids of the labels each holds.

        A ValueError where a value is not finite or an id is beyond the lookup; the model is then as it was.
        """
        self._grow()
        samples = checked_rows(rows, _count(self.features))
        held = checked_labels(labels, rows.shape[0], _count(self.labels))
        count, width = rows.shape[0], _padded(_count(self.labels))
        duals = np.empty((count if self.epochs > 1 else 1, width), dtype=np.float32)
        rng, learn = np.random.default_rng((self.seed, self.seen)), compiled(_learn)
        model = self._weights, self._intercepts[:width], np.float32(1 / (2 * self.cost))
        for epoch in range(self.epochs):
            learn(*samples, *held, rng.permutation(count), duals, epoch == 0, *model)
        self.seen += count
        return self

    def decision_function(self, rows: Any) -> np.ndarray:
        """Margins of samples: float32 (samples, labels)."""
        self._grow()
        samples, width = checked_rows(rows, _count(self.features)), _padded(_count(self.labels))
        margins = np.empty((rows.shape[0], width), dtype=np.float32)
        compiled(_decide)(*samples, self._weights, self._intercepts[:width], margins)
        return np.ascontiguousarray(margins[:, : _count(self.labels)])

    def save(self, folder: Path) -> None:
        """Writes the model (``storage/formats/linear_model.py``), with the names that its lookups hold."""
        self._grow()
        known = {"features": self.features, "labels": self.labels}
        names = {name: list(own) for name, own in known.items() if isinstance(own, Lookup)}
        settings = {name: getattr(self, name) for name in ("cost", "epochs", "seed", "seen")}
        arrays = {"weights": self.weights, "intercepts": self.intercepts}
        write_linear_model(folder, type(self).__name__, arrays, names, settings)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The saved model, which continues as the one that was saved."""
        files = read_linear_model(folder, cls.__name__)
        seen, weights = files.settings.pop("seen"), files.arrays["weights"]
        known = zip(("features", "labels"), weights.shape, strict=True)
        model = cls(
            **{name: Lookup(files.names[name]) if name in files.names else count for name, count in known},
            **files.settings,
        )
        model.seen = seen
        model.weights[:], model.intercepts[:] = weights, files.arrays["intercepts"]
        return model

    def _grow(self) -> None:
        """Makes room for what the lookups hold: twice the rows or columns where they no longer suffice."""
        needed = _count(self.features), _padded(_count(self.labels))
        old = self._weights.shape
        if needed[0] <= old[0] and needed[1] <= old[1]:
            return
        rows, columns = (have if need <= have else max(need, 2 * have) for need, have in zip(needed, old))
        weights, intercepts = np.zeros((rows, columns), np.float32), np.full(columns, -1, np.float32)
        weights[: old[0], : old[1]], intercepts[: old[1]] = self._weights, self._intercepts
        self._weights, self._intercepts = weights, intercepts


def _count(known: Lookup | int) -> int:
    return len(known) if isinstance(known, Lookup) else known


def _padded(labels: int) -> int:
    """Columns that the loops run over. Those beyond the labels stay at w = 0 and b = −1."""
    return labels if labels < VECTOR // 2 else -(-labels // VECTOR) * VECTOR


@no_type_check
def _learn(offsets, ids, values, held_offsets, held, order, duals, first, weights, intercepts, slack):
    """One pass over samples in an order; ``slack`` is 1 / 2C. Duals of one row: they are not remembered."""
    zero, one = np.float32(0), np.float32(1)
    step, sign = np.empty_like(intercepts), np.empty_like(intercepts)
    width = len(intercepts)
    for row in order:
        begin, end = offsets[row], offsets[row + 1]
        step[:] = intercepts  # margins first
        square = one
        for place in range(begin, end):
            value, own = values[place], weights[ids[place]]
            square += value * value
            for label in range(width):
                step[label] += value * own[label]
        sign[:] = -one
        for place in range(held_offsets[row], held_offsets[row + 1]):
            sign[held[place]] = one
        dual = duals[row % len(duals)]
        if first:
            dual[:] = zero
        scale, moved = one / (square + slack), False
        for label in range(width):
            wanted = (one - sign[label] * step[label] - slack * dual[label]) * scale
            change = max(wanted, -dual[label])
            dual[label] += change
            step[label] = change * sign[label]
            intercepts[label] += step[label]
            moved |= change != zero
        if moved:
            for place in range(begin, end):
                value, own = values[place], weights[ids[place]]
                for label in range(width):
                    own[label] += value * step[label]


@no_type_check
def _decide(offsets, ids, values, weights, intercepts, margins):
    for row in range(len(margins)):
        sums = margins[row]
        sums[:] = intercepts
        for place in range(offsets[row], offsets[row + 1]):
            value, own = values[place], weights[ids[place]]
            for label in range(len(intercepts)):
                sums[label] += value * own[label]
