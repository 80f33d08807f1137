"""Predicts the kinds of titles (film, series, news …) with a requested precision.

A logistic regression per kind is fitted to the titles whose kind is stated by the guide (logistic.py). The
margin of a title is its value w · x + b. A kind is predicted if the margin reaches a threshold. To choose the
threshold, each of these titles gets a margin from a model that was fitted without the titles of its franchise
(held-out folds). The threshold is the lowest margin from which on the precision of these titles reaches the
requested value with a confidence of 75 % (lower bound of Clopper and Pearson. The use of confidence or
fiducial limits illustrated in the case of the binomial. Biometrika 26, 1934).

Nothing is predicted on channels without labelled titles: with thresholds from folds by channel, the precision
of films was .91 on twelve guides, .72 on the worst (docs/kinds.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from storage.shapes import Float32, Int
from tasks.kinds.features import Inputs, Scaling
from tasks.kinds.kinds import KINDS, Kind
from tasks.kinds.logistic import fit_columns
from tasks.scoring.isotonic import fit_shares

FOLDS = 4  # folds of franchises
MAX_TRAINING = 100_000  # maximum number of training titles; a larger number is sampled
MIN_EXAMPLES = 20  # minimum number of titles of a kind; a kind with fewer titles is not predicted
SOURCE_EXAMPLES = 50  # minimum number of titles of a kind for a separate threshold of a feed
LEAST_PROBABILITY = 0.8  # minimum probability of a predicted kind; the precision is only a mean over titles
# Probability that the precision is lower than requested. With .05, guides with about 100 titles of a kind had
# no predictions. With .25, the mean precision of all kinds but "other" (.944) exceeded the requested one.
RISK = 0.25


@dataclass(frozen=True)
class Validation:
    """Held-out margins of training titles, from which thresholds and probabilities are computed.

    Probabilities and bounds are computed when the model is fitted, because the light installation, which only
    predicts, has no SciPy.

    Attributes:
        titles: Title ids.
        labels: 1: title of the kind, 0: title of other kinds, -1: unknown.
        folds: Held-out fold of each title.
        margins: Margin of each title and kind, by a model that was fitted without the fold.
        probabilities: Probability of the kind at each margin (isotonic regression).
        bounds: Lower bound of the precision of titles with at least each margin; 0 for unknown labels.
        source_bounds: Lower bounds among the titles of the same feed, with risk .5.
        sources: Feed of each title, as an index into ``KindClassifier.sources``.
    """

    titles: Int[np.ndarray, " examples"]
    labels: Int[np.ndarray, "examples kinds"]
    folds: Int[np.ndarray, " examples"]
    margins: Float32[np.ndarray, "examples kinds"]
    probabilities: Float32[np.ndarray, "examples kinds"]
    bounds: Float32[np.ndarray, "examples kinds"]
    source_bounds: Float32[np.ndarray, "examples kinds"]
    sources: Int[np.ndarray, " examples"]

    @staticmethod
    def from_margins(
        titles: np.ndarray, labels: np.ndarray, folds: np.ndarray, margins: np.ndarray, sources: np.ndarray
    ) -> "Validation":
        """Computes probabilities and bounds from the margins of titles."""
        probabilities, bounds, source_bounds = (np.zeros(margins.shape, np.float32) for _ in range(3))
        for column in range(labels.shape[1]):
            rows = np.flatnonzero(labels[:, column] >= 0)
            selection = rows, column
            _, shares, knot_ids = fit_shares(margins[selection], labels[selection])
            probabilities[selection] = shares[knot_ids]
            bounds[selection] = _precision_bounds(margins[selection], labels[selection], RISK)
            for source in np.unique(sources):
                selection = rows[sources[rows] == source], column
                if labels[selection].sum() >= SOURCE_EXAMPLES:
                    source_bounds[selection] = _precision_bounds(margins[selection], labels[selection], 0.5)
        return Validation(titles, labels, folds, margins, probabilities, bounds, source_bounds, sources)

    def take(self, rows: np.ndarray) -> "Validation":
        """Selects titles by row number, and computes their probabilities and bounds again."""
        return Validation.from_margins(
            self.titles[rows],
            self.labels[rows],
            self.folds[rows],
            self.margins[rows],
            self.sources[rows],
        )


@dataclass(frozen=True)
class KindClassifier:
    """Fitted classifier of kinds.

    Attributes:
        scaling: Scaling of the features.
        weights: Weights of all features and intercepts (``Inputs.margins``).
        validation: Held-out margins, from which thresholds and probabilities are computed.
        channels: Channels of the training titles; nothing is predicted on other channels.
        sources: Names of the feeds of the training titles.
    """

    scaling: Scaling
    weights: Float32[np.ndarray, "weights kinds"]
    validation: Validation
    channels: frozenset[str]
    sources: tuple[str, ...]

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns all arrays of the classifier by name. ``from_arrays`` restores the classifier."""
        arrays = {f"scaling.{name}": array for name, array in vars(self.scaling).items()}
        arrays |= {f"validation.{name}": array for name, array in vars(self.validation).items()}
        return arrays | {"weights": self.weights}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> "KindClassifier | None":
        """Creates a classifier from stored arrays and settings; returns None if there are no arrays."""
        if "weights" not in arrays:
            return None
        scaling = Scaling(**{field.name: arrays[f"scaling.{field.name}"] for field in fields(Scaling)})
        validation = Validation(
            **{field.name: arrays[f"validation.{field.name}"] for field in fields(Validation)}
        )
        names = frozenset(settings["channels"]), tuple(settings["sources"])
        return KindClassifier(scaling, arrays["weights"], validation, *names)

    def select(
        self, margins: np.ndarray, sources: Sequence[str], precision: Mapping[Kind, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Selects the kinds to predict, so that each kind reaches its minimum precision.

        In a feed with many titles of a kind, the margin must also reach a threshold that is computed from the
        titles of this feed with a confidence of 50 %. Few feeds have enough titles for more.

        Args:
            margins: Margins of titles, (titles, kinds).
            sources: Name of the feed of each title.
            precision: Minimum precision of each kind.

        Returns:
            Whether each kind is predicted, bool (titles, kinds), and probabilities, float64 (titles, kinds).
        """
        validation, probabilities = self.validation, np.zeros(margins.shape)
        limits = np.zeros(margins.shape)
        number_of = {source: number for number, source in enumerate(self.sources)}
        source_ids = np.array([number_of.get(source, -1) for source in sources])
        for column, kind in enumerate(KINDS):
            is_example = validation.labels[:, column] >= 0
            selection = is_example, column
            limits[:, column] = _lowest_threshold(
                validation.margins[selection], validation.bounds[selection], precision[kind]
            )
            knots, first_indices = np.unique(validation.margins[selection], return_index=True)
            if len(knots):
                values = validation.probabilities[selection][first_indices]
                probabilities[:, column] = np.interp(margins[:, column], knots, values)
            for source in range(len(self.sources)):
                examples = is_example & (validation.sources == source)
                if (validation.labels[examples, column] == 1).sum() >= SOURCE_EXAMPLES:
                    bounds = validation.source_bounds[examples, column]
                    limit = _lowest_threshold(validation.margins[examples, column], bounds, precision[kind])
                    rows = source_ids == source
                    limits[rows, column] = np.maximum(limits[rows, column], limit)
        return (margins >= limits) & (probabilities >= LEAST_PROBABILITY), probabilities


def _lowest_threshold(margins: np.ndarray, bounds: np.ndarray, precision: float) -> float:
    """Returns the lowest margin from which on the precision bound is high enough, or infinity if none is."""
    return float(margins[bounds >= precision].min(initial=np.inf))


def fit_classifier(
    scaling: Scaling,
    inputs: Inputs,
    labels: Int[np.ndarray, "titles kinds"],
    families: Int[np.ndarray, " titles"],
    channels: list[str],
    sources: list[str],
) -> KindClassifier | None:
    """Fits a classifier of kinds; returns None if no kind has MIN_EXAMPLES titles.

    Args:
        scaling: Scaling by which ``inputs`` were computed.
        inputs: Features of all titles.
        labels: 1: title of the kind, 0: title of other kinds, -1: unknown.
        families: Hash of each title's franchise; a franchise is in one fold.
        channels, sources: Main channel and feed of each title.
    """
    labels = np.where((labels == 1).sum(axis=0) >= MIN_EXAMPLES, labels, -1).astype(np.int8)
    rows = np.flatnonzero((labels >= 0).any(axis=1))
    if not (labels == 1).any():
        return None
    if len(rows) > MAX_TRAINING:
        rows = np.sort(np.random.default_rng(0).choice(rows, MAX_TRAINING, replace=False))
    inputs, labels = inputs.take(rows), labels[rows]
    names, source_ids = np.unique(np.array(sources, dtype=str)[rows], return_inverse=True)
    folds = (families[rows] % FOLDS).astype(np.int8)
    weights, margins = _fit(inputs, labels, folds)
    validation = Validation.from_margins(rows, labels, folds, margins, source_ids.astype(np.int16))
    labelled = frozenset(np.array(channels, dtype=object)[rows].tolist())
    return KindClassifier(scaling, weights, validation, labelled, tuple(names.tolist()))


def _fit(
    inputs: Inputs, labels: np.ndarray, folds: np.ndarray
) -> tuple[Float32[np.ndarray, "weights kinds"], Float32[np.ndarray, "examples kinds"]]:
    """Returns weights fitted to all titles, and the margins of titles by models fitted without their fold."""
    kinds = np.flatnonzero((labels == 1).any(axis=0))
    is_example = labels[:, kinds] >= 0
    parts = [is_example, *(is_example & (folds != fold)[:, None] for fold in range(FOLDS))]
    signs = np.where(labels[:, kinds] == 1, 1, -1).astype(np.float32)
    parameters = fit_columns(inputs, np.tile(signs, len(parts)), np.hstack(parts))
    weights = np.zeros((len(parts), len(parameters), labels.shape[1]), dtype=np.float32)
    weights[:, :, kinds] = np.stack(np.split(parameters, len(parts), axis=1))
    margins = np.zeros(labels.shape, dtype=np.float32)
    for fold in range(FOLDS):
        rows = np.flatnonzero(folds == fold)
        margins[rows] = inputs.take(rows).margins(weights[1 + fold])
    return weights[0], margins


def _precision_bounds(margins: np.ndarray, labels: np.ndarray, risk: float) -> np.ndarray:
    """Returns for each margin a lower bound of the precision among titles with at least this margin.

    ``risk`` is the probability that the precision is below the bound (Clopper and Pearson).
    """
    from scipy.special import betaincinv

    order = np.argsort(-margins, kind="stable")
    count, correct = np.arange(1, len(order) + 1), np.cumsum(labels[order])
    candidates = np.flatnonzero(2 * correct >= count)  # a threshold below is of no use, and bounds take time
    count, correct = count[candidates], correct[candidates]
    bounds = np.zeros(len(order))
    bounds[order[candidates]] = betaincinv(correct, count - correct + 1, risk)
    return bounds
