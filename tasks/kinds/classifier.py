r"""Logistic regression per kind on the features of titles, with thresholds that reach a precision.

For each kind k, over the titles whose label y (1 or −1) is known, with x the features of a title:

    minimize  Σ log(1 + exp(−y (w_k · x + b_k))) + ½ ‖w_k‖²

All kinds are fitted at once by L-BFGS. Each title also gets two margins from models that were not fitted to
it: one from folds by franchise, so that no edition of its show is among the training titles, and one from
folds by channel, for titles on channels that are not in the training data. A threshold is the lowest margin
above which the precision on these titles reaches the requested value with 95 % confidence (lower bound of
Clopper and Pearson. The use of confidence or fiducial limits illustrated in the case of the binomial.
Biometrika 26, 1934).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from storage.shapes import Float, Float32, Int
from tasks.kinds.features import Inputs, Scaling
from tasks.kinds.kinds import KINDS, Kind

PRECISION: Mapping[Kind, float] = {**dict.fromkeys(KINDS, 0.95), "film": 0.97}
FOLDS, ITERATIONS = 4, 40
MAX_TRAINING = 100_000  # titles; more are sampled
MIN_EXAMPLES = 20  # titles of a kind; with fewer, it is not predicted
SOURCE_EXAMPLES = 50  # a feed with at least this many titles of a kind has its own threshold
RISK = 0.05  # probability that the precision is lower than requested


@dataclass(frozen=True)
class Validation:
    """Margins of training titles by models that were not fitted to them.

    Attributes:
        titles: Title ids.
        labels: 1: of the kind, 0: of other kinds, -1: unknown.
        margins: By folds of franchises.
        channel_margins: By folds of channels.
        sources: Index of the feed in ``KindClassifier.sources``.
    """

    titles: Int[np.ndarray, " examples"]
    labels: Int[np.ndarray, "examples kinds"]
    margins: Float32[np.ndarray, "examples kinds"]
    channel_margins: Float32[np.ndarray, "examples kinds"]
    sources: Int[np.ndarray, " examples"]


@dataclass(frozen=True)
class KindClassifier:
    """A fitted classifier.

    Attributes:
        scaling: Scaling of the features.
        weights: Weights of all features; the last row has the intercepts.
        validation: Margins from which thresholds and probabilities are computed.
        channels: Channels of the training titles.
        sources: Feeds of the training titles.
    """

    scaling: Scaling
    weights: Float32[np.ndarray, "features kinds"]
    validation: Validation
    channels: frozenset[str]
    sources: tuple[str, ...]

    def margins(self, inputs: Inputs) -> Float32[np.ndarray, "titles kinds"]:
        """Returns the margins of titles."""
        return _margins(inputs, self.weights)

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns all arrays by name."""
        arrays = {f"scaling.{name}": array for name, array in vars(self.scaling).items()}
        arrays |= {f"validation.{name}": array for name, array in vars(self.validation).items()}
        return arrays | {"weights": self.weights}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> "KindClassifier | None":
        """Returns the classifier of arrays and of the settings channels and sources; None without arrays."""
        if "weights" not in arrays:
            return None
        parts = (
            kind(**{field.name: arrays[f"{name}.{field.name}"] for field in fields(kind)})
            for name, kind in (("scaling", Scaling), ("validation", Validation))
        )
        scaling, validation = parts
        names = frozenset(settings["channels"]), tuple(settings["sources"])
        return KindClassifier(scaling, arrays["weights"], validation, *names)

    @cached_property
    def curves(self) -> "list[tuple[_Curve, _Curve]]":
        """Maps of margins to probabilities of each kind: on channels of training titles, and on others."""
        both = self.validation.margins, self.validation.channel_margins
        columns = enumerate(self.validation.labels.T)
        return [tuple(_Curve.fit(margins[:, kind], labels) for margins in both) for kind, labels in columns]

    def thresholds(self, kind: Kind, precision: float) -> tuple[float, float, dict[str, float]]:
        """Returns the lowest margins at which a kind is predicted; infinite if no margin suffices.

        Returns:
            The threshold on channels of the training titles, on other channels, and of feeds with many titles
            of the kind. The latter is at least the first, and the precision is its expected value, since few
            feeds have enough titles for 95 % confidence.
        """
        validation, column = self.validation, KINDS.index(kind)
        labels = validation.labels[:, column]
        ordinary, on_new_channels = (
            lowest_margin(margins[:, column], labels, precision)
            for margins in (validation.margins, validation.channel_margins)
        )
        margins = validation.margins[:, column]
        by_source = {
            source: max(ordinary, lowest_margin(margins[rows], labels[rows], precision, risk=0.5))
            for index, source in enumerate(self.sources)
            if (labels[rows := validation.sources == index] == 1).sum() >= SOURCE_EXAMPLES
        }
        return ordinary, on_new_channels, by_source


def fit_classifier(
    scaling: Scaling,
    inputs: Inputs,
    labels: Int[np.ndarray, "titles kinds"],
    families: Int[np.ndarray, " titles"],
    channels: list[str],
    sources: list[str],
) -> KindClassifier | None:
    """Fits a classifier; None if no kind has enough examples.

    Args:
        scaling, inputs: Features of all titles.
        labels: 1, 0 or -1 (unknown).
        families: Hash of each title's franchise.
        channels, sources: Main channel and feed of each title.
    """
    labels = np.where((labels == 1).sum(axis=0) >= MIN_EXAMPLES, labels, -1).astype(np.int8)
    rows = np.flatnonzero((labels >= 0).any(axis=1))
    if not (labels == 1).any():
        return None
    if len(rows) > MAX_TRAINING:
        rows = np.sort(np.random.default_rng(0).choice(rows, MAX_TRAINING, replace=False))
    inputs, labels = inputs.take(rows), labels[rows]
    channel_ids = np.unique(np.array(channels, dtype=str)[rows], return_inverse=True)[1]
    names, source_ids = np.unique(np.array(sources, dtype=str)[rows], return_inverse=True)
    margins = [_cross_fitted(inputs, labels, groups % FOLDS) for groups in (families[rows], channel_ids)]
    validation = Validation(rows, labels, *margins, source_ids.astype(np.int16))
    weights = _fit(inputs, labels)
    return KindClassifier(scaling, weights, validation, frozenset(channels), tuple(names.tolist()))


def lowest_margin(margins: np.ndarray, labels: np.ndarray, precision: float, risk: float = RISK) -> float:
    """Returns the lowest margin above which the precision is reached, or infinity.

    Args:
        margins: Margins of titles.
        labels: 1, 0 or -1 (unknown).
        precision: Minimum precision.
        risk: Probability that the precision is lower.
    """
    from scipy.special import betaincinv

    order = np.flatnonzero(labels >= 0)
    order = order[np.argsort(-margins[order], kind="stable")]
    count = np.arange(1, len(order) + 1)
    correct = np.cumsum(labels[order])
    bound = np.where(correct > 0, betaincinv(np.maximum(correct, 1), count - correct + 1, risk), 0.0)
    last = np.flatnonzero(bound >= precision).max(initial=-1)
    return float(margins[order[last]]) if last >= 0 else np.inf


def _cross_fitted(inputs: Inputs, labels: np.ndarray, folds: np.ndarray) -> np.ndarray:
    margins = np.zeros(labels.shape, dtype=np.float32)
    for fold in range(FOLDS):
        rows, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if len(rows) and len(others):
            margins[rows] = _margins(inputs.take(rows), _fit(inputs.take(others), labels[others]))
    return margins


def _margins(inputs: Inputs, weights: np.ndarray) -> np.ndarray:
    dense, words = inputs.dense.shape[1], inputs.dense.shape[1] + inputs.words.shape[1]
    of_channels = inputs.channel_of @ (inputs.channels @ weights[words:-1])
    return inputs.dense @ weights[:dense] + inputs.words @ weights[dense:words] + of_channels + weights[-1]


def _fit(inputs: Inputs, labels: np.ndarray) -> Float32[np.ndarray, "features kinds"]:
    """Minimizes the objective of all kinds."""
    from scipy.optimize import minimize

    is_example, signs = (labels >= 0).astype(np.float32), np.where(labels == 1, 1, -1).astype(np.float32)
    transposed = [inputs.words.T.tocsr(), inputs.channels.T.tocsr(), inputs.channel_of.T.tocsr()]
    features = inputs.dense.shape[1] + inputs.words.shape[1] + inputs.channels.shape[1] + 1

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.astype(np.float32).reshape(features, -1)
        agreement = signs * _margins(inputs, weights)
        penalty = 0.5 * np.square(weights[:-1]).sum(dtype=np.float64)
        loss = (np.logaddexp(0, -agreement) * is_example).sum(dtype=np.float64) + penalty
        slopes = -signs * is_example / (1 + np.exp(np.minimum(agreement, 60)))
        of_channels = transposed[1] @ (transposed[2] @ slopes)
        parts = [inputs.dense.T @ slopes, transposed[0] @ slopes, of_channels]
        gradient = np.concatenate([np.concatenate(parts) + weights[:-1], slopes.sum(axis=0)[None]])
        return float(loss), gradient.ravel().astype(np.float64)

    start = np.zeros(features * labels.shape[1])
    result = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    return result.x.astype(np.float32).reshape(features, -1)


@dataclass(frozen=True)
class _Curve:
    """Increasing map of margins to probabilities (isotonic regression)."""

    margins: Float[np.ndarray, " knots"]
    probabilities: Float[np.ndarray, " knots"]

    @staticmethod
    def fit(margins: np.ndarray, labels: np.ndarray) -> "_Curve":
        from scipy.optimize import isotonic_regression

        rows = labels >= 0
        if not rows.any():
            return _Curve(np.zeros(1), np.zeros(1))
        knots, knot_ids, count = np.unique(margins[rows], return_inverse=True, return_counts=True)
        shares = np.bincount(knot_ids, labels[rows]) / count
        return _Curve(knots, isotonic_regression(shares, weights=count).x)

    def __call__(self, margins: np.ndarray) -> np.ndarray:
        return np.interp(margins, self.margins, self.probabilities)
