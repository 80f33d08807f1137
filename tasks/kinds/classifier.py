"""Predicts the kinds of titles (film, series, news …) with a requested precision.

A logistic regression per kind is fitted to the training titles, whose kinds the guide states (logistic.py).
It assigns a margin w · x + b to a title with the features x. A kind is predicted if the margin reaches a
threshold. For the choice of the threshold, each training title gets a held-out margin from a regression that
was fitted without its franchise (folds). The threshold is the lowest margin such that the titles with at
least this margin reach the requested precision with a confidence of 75 % (lower bound of Clopper and Pearson.
The use of confidence or fiducial limits illustrated in the case of the binomial. Biometrika 26, 1934).

Nothing is predicted on channels without training titles. When thresholds were computed from folds of
channels, the precision of films on such channels was .91 on twelve guides, and .72 on the worst guide
(docs/kinds.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from storage.shapes import Float32, Int
from tasks.kinds.features import Inputs, Scaling
from tasks.kinds.kinds import KINDS, Kind
from tasks.kinds.logistic import fit_columns
from tasks.scoring.isotonic import fit_success_shares

FOLDS = 4  # folds of franchises
MAX_TRAINING = 100_000  # maximum number of training titles; a larger number is sampled
MIN_EXAMPLES = 20  # a kind with fewer training titles is not predicted
SOURCE_EXAMPLES = 50  # minimum number of titles of a kind in a feed for a threshold of this feed
MIN_PROBABILITY = 0.8  # minimum for a predicted kind, because the requested precision is only an average
# Probability that the precision is lower than requested. With .05, nothing was predicted in guides with about
# 100 titles of a kind. With .25, the mean precision of each kind except "other" (.944) exceeded the requested
# precision.
RISK = 0.25
SOURCE_RISK = 0.5  # RISK for thresholds of single feeds; few feeds have enough titles for a lower risk


@dataclass(frozen=True)
class Validation:
    """Training titles with held-out margins, from which thresholds and probabilities are computed.

    Probabilities and bounds are computed when the model is fitted, because the light installation, which only
    predicts, has no SciPy.

    Attributes:
        titles: Title ids.
        labels: 1: title of the kind, 0: title of other kinds, -1: unknown.
        folds: Fold of each title.
        margins: Margin of each title and kind, computed by a regression that was fitted without the fold.
        probabilities: Probability that a title with this margin has the kind (isotonic regression).
        bounds: Lower bound of the precision among the titles with at least this margin; 0 if the label is
            unknown.
        source_bounds: Lower bound of the precision among the titles of the title's feed with at least this
            margin, with SOURCE_RISK.
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
        """Computes probabilities of kinds, and lower bounds of the precision, from the margins of titles."""
        probabilities, bounds, source_bounds = (np.zeros(margins.shape, np.float32) for _ in range(3))
        for column in range(labels.shape[1]):
            rows = np.flatnonzero(labels[:, column] >= 0)
            selection = rows, column
            _, shares, knot_ids = fit_success_shares(margins[selection], labels[selection])
            probabilities[selection] = shares[knot_ids]
            bounds[selection] = _precision_bounds(margins[selection], labels[selection], RISK)
            for source in np.unique(sources):
                selection = rows[sources[rows] == source], column
                if labels[selection].sum() >= SOURCE_EXAMPLES:
                    source_bounds[selection] = _precision_bounds(
                        margins[selection], labels[selection], SOURCE_RISK
                    )
        return Validation(titles, labels, folds, margins, probabilities, bounds, source_bounds, sources)

    def take(self, rows: np.ndarray) -> "Validation":
        """Selects titles by row number. Probabilities and bounds are recomputed from the selected titles."""
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
        scaling: Computes the features of titles.
        weights: Weights of all features, and intercepts (``Inputs.margins``).
        validation: Training titles with held-out margins, for thresholds and probabilities.
        channels: Channels of the training titles; nothing is predicted on other channels.
        sources: Names of the feeds of the training titles.
    """

    scaling: Scaling
    weights: Float32[np.ndarray, "weights kinds"]
    validation: Validation
    channels: frozenset[str]
    sources: tuple[str, ...]

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns all arrays of the classifier by name, as ``from_arrays`` expects them."""
        arrays = {f"scaling.{name}": array for name, array in vars(self.scaling).items()}
        arrays |= {f"validation.{name}": array for name, array in vars(self.validation).items()}
        return arrays | {"weights": self.weights}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> "KindClassifier | None":
        """Restores a classifier from kinds.safetensors; returns None if the file contains no classifier."""
        if "weights" not in arrays:
            return None
        scaling = Scaling(**{field.name: arrays[f"scaling.{field.name}"] for field in fields(Scaling)})
        validation = Validation(
            **{field.name: arrays[f"validation.{field.name}"] for field in fields(Validation)}
        )
        channels, sources = frozenset(settings["channels"]), tuple(settings["sources"])
        return KindClassifier(scaling, arrays["weights"], validation, channels, sources)

    def select(
        self, margins: np.ndarray, sources: Sequence[str], precision: Mapping[Kind, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Selects which kinds are predicted, so that the predictions of each kind reach a minimum precision.

        In a feed with many titles of a kind, the margin must also reach a threshold that is computed from the
        titles of this feed alone.

        Args:
            margins: Margins of titles, (titles, kinds).
            sources: Name of the feed of each title.
            precision: Minimum precision of each kind.

        Returns:
            Whether each kind is predicted, bool (titles, kinds), and probabilities, float64 (titles, kinds).
        """
        validation, probabilities = self.validation, np.zeros(margins.shape)
        thresholds = np.zeros(margins.shape)
        id_of_source = {source: number for number, source in enumerate(self.sources)}
        source_ids = np.array([id_of_source.get(source, -1) for source in sources])
        for column, kind in enumerate(KINDS):
            is_example = validation.labels[:, column] >= 0
            selection = is_example, column
            thresholds[:, column] = _lowest_threshold(
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
                    margins_of_kind = validation.margins[examples, column]
                    source_threshold = _lowest_threshold(margins_of_kind, bounds, precision[kind])
                    is_source = source_ids == source
                    thresholds[is_source, column] = np.maximum(
                        thresholds[is_source, column], source_threshold
                    )
        return (margins >= thresholds) & (probabilities >= MIN_PROBABILITY), probabilities


def _lowest_threshold(margins: np.ndarray, bounds: np.ndarray, precision: float) -> float:
    """Returns the lowest margin whose precision bound reaches ``precision``; infinity if no bound does."""
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
        scaling: Scaling with which ``inputs`` were computed.
        inputs: Features of all titles.
        labels: 1: title of the kind, 0: title of other kinds, -1: unknown.
        families: Hash of each title's franchise; all titles of a franchise are in the same fold.
        channels, sources: Main channel and feed of each title.
    """
    labels = np.where((labels == 1).sum(axis=0) >= MIN_EXAMPLES, labels, -1).astype(np.int8)
    rows = np.flatnonzero((labels >= 0).any(axis=1))
    if not (labels == 1).any():
        return None
    if len(rows) > MAX_TRAINING:
        rows = np.sort(np.random.default_rng(0).choice(rows, MAX_TRAINING, replace=False))
    inputs, labels = inputs.take(rows), labels[rows]
    source_names, source_ids = np.unique(np.array(sources, dtype=str)[rows], return_inverse=True)
    folds = (families[rows] % FOLDS).astype(np.int8)
    weights, margins = _fit_folds(inputs, labels, folds)
    validation = Validation.from_margins(rows, labels, folds, margins, source_ids.astype(np.int16))
    training_channels = frozenset(np.array(channels, dtype=object)[rows].tolist())
    return KindClassifier(scaling, weights, validation, training_channels, tuple(source_names.tolist()))


def _fit_folds(
    inputs: Inputs, labels: np.ndarray, folds: np.ndarray
) -> tuple[Float32[np.ndarray, "weights kinds"], Float32[np.ndarray, "examples kinds"]]:
    """Fits logistic regressions to all titles, and to all titles without each fold.

    Returns:
        Weights that are fitted to all titles, and held-out margins: the margins of a title are computed with
        weights that are fitted without its fold.
    """
    kinds = np.flatnonzero((labels == 1).any(axis=0))
    is_example = labels[:, kinds] >= 0
    fits = [is_example, *(is_example & (folds != fold)[:, None] for fold in range(FOLDS))]
    signs = np.where(labels[:, kinds] == 1, 1, -1).astype(np.float32)
    fitted_columns = fit_columns(inputs, np.tile(signs, len(fits)), np.hstack(fits))
    weights = np.zeros((len(fits), len(fitted_columns), labels.shape[1]), dtype=np.float32)
    weights[:, :, kinds] = np.stack(np.split(fitted_columns, len(fits), axis=1))
    margins = np.zeros(labels.shape, dtype=np.float32)
    for fold in range(FOLDS):
        rows = np.flatnonzero(folds == fold)
        margins[rows] = inputs.take(rows).margins(weights[1 + fold])
    return weights[0], margins


def _precision_bounds(margins: np.ndarray, labels: np.ndarray, risk: float) -> np.ndarray:
    """Computes, for each margin, a lower bound of the precision among the titles with at least this margin.

    Args:
        margins: Margins of titles.
        labels: 1 for titles of the kind, else 0.
        risk: Probability that the precision is below the bound (Clopper and Pearson).
    """
    from scipy.special import betaincinv

    order = np.argsort(-margins, kind="stable")
    count, correct = np.arange(1, len(order) + 1), np.cumsum(labels[order])
    candidates = np.flatnonzero(2 * correct >= count)  # MIN_PROBABILITY excludes the other margins
    count, correct = count[candidates], correct[candidates]
    bounds = np.zeros(len(order))
    bounds[order[candidates]] = betaincinv(correct, count - correct + 1, risk)
    return bounds
