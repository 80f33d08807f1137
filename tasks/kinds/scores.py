"""Scores predictions of kinds (precision, recall, average precision) by cross-validation.

The scored titles have categories that state their kinds. The prediction ignores these categories: the margin
of a title comes from a regression that was fitted without the fold of the title (classifier.py), and the
threshold is computed from the margins of the other folds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from storage.formats.programme_kinds import read_kind_arrays
from tasks.kinds.classifier import FOLDS, KindClassifier
from tasks.kinds.kinds import KINDS, Kind
from tasks.kinds.precision import PRECISION

Figures = dict[str, float | int | None]


def predict_held_out(classifier: KindClassifier, precision: Mapping[Kind, float] = PRECISION) -> np.ndarray:
    """Predicts the kinds of the validation titles of a classifier by cross-validation.

    Args:
        classifier: Classifier with its validation titles.
        precision: Minimum precision of each kind.

    Returns:
        Whether each kind is predicted, bool (examples, kinds).
    """
    validation = classifier.validation
    is_predicted = np.zeros(validation.labels.shape, dtype=bool)
    for fold in range(FOLDS):
        rows = np.flatnonzero(validation.folds == fold)
        other_folds = validation.take(np.flatnonzero(validation.folds != fold))
        sources = [classifier.sources[source] for source in validation.sources[rows]]
        fold_classifier = replace(classifier, validation=other_folds)
        is_predicted[rows] = fold_classifier.select(validation.margins[rows], sources, precision)[0]
    return is_predicted


def score_kind(margins: np.ndarray, labels: np.ndarray, predicted: np.ndarray) -> Figures:
    """Computes the scores of one kind.

    Args:
        margins: Margin of each title.
        labels: 1: title of the kind, 0: title of other kinds, -1: unknown; the title is ignored.
        predicted: Whether the kind is predicted for each title.

    Returns:
        ``n``, the number of labelled titles; ``titles``, the number of titles of the kind;
        ``average_precision``, ``precision`` and ``recall``. A score that is undefined is None.
    """
    is_labelled = labels >= 0
    margins, is_kind = margins[is_labelled], labels[is_labelled] == 1
    is_predicted = predicted[is_labelled]
    order = np.argsort(-margins, kind="stable")
    precisions = np.cumsum(is_kind[order]) / np.arange(1, len(order) + 1)
    count = int(is_kind.sum())
    return {
        "n": int(is_labelled.sum()),
        "titles": count,
        "average_precision": float(precisions[is_kind[order]].mean()) if count else None,
        "precision": float(is_kind[is_predicted].mean()) if is_predicted.any() else None,
        "recall": float(is_predicted[is_kind].mean()) if count else None,
    }


def kind_scores(corpus: Path) -> dict[str, dict[str, Figures]]:
    """Computes the section "kinds" of scores.json for a Corpus; {} if the Corpus has no classifier."""
    arrays, settings = read_kind_arrays(corpus) or ({}, {})
    classifier = KindClassifier.from_arrays(arrays, settings)
    splits = pq.read_table(corpus / "titles.parquet", columns=["split"])["split"].to_pylist()
    return score_kinds(classifier, splits) if classifier else {}


def score_kinds(classifier: KindClassifier, splits: Sequence[str]) -> dict[str, dict[str, Figures]]:
    """Computes the section "kinds" of scores.json: scores by kind and set of titles.

    The sets are ``all``, which contains all labelled titles, and the held-out sets of the corpus.

    Args:
        classifier: Classifier with its validation titles.
        splits: Split of each title of the corpus.
    """
    validation = classifier.validation
    title_splits = np.array(splits, dtype=str)[validation.titles]
    predicted = predict_held_out(classifier)
    scores: dict[str, dict[str, Figures]] = {}
    sets = {name: title_splits == name for name in ("unseen_title", "unseen_show", "next_period")}
    sets = {"all": np.ones(len(title_splits), dtype=bool), **sets}
    for column, kind in enumerate(KINDS):
        labels = validation.labels[:, column]
        if (labels == 1).any():
            scores[kind] = {
                name: score_kind(validation.margins[rows, column], labels[rows], predicted[rows, column])
                for name, rows in sets.items()
            }
    return scores
