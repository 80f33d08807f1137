"""Scores predicted kinds of titles (precision, recall, average precision) by cross-validation.

The margin of a title comes from a model that was fitted without the fold of the title (classifier.py), and is
compared with thresholds from the other folds. The scored titles have categories that state their kinds; these
categories are ignored in the prediction.
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
    """Predicts the kinds of validation titles by cross-validation; returns a mask, bool (examples, kinds).

    Args:
        classifier: Classifier with its validation titles.
        precision: Minimum precision of each kind.
    """
    validation = classifier.validation
    is_predicted = np.zeros(validation.labels.shape, dtype=bool)
    for fold in range(FOLDS):
        rows = np.flatnonzero(validation.folds == fold)
        fitted_without = replace(
            classifier, validation=validation.take(np.flatnonzero(validation.folds != fold))
        )
        sources = [classifier.sources[source] for source in validation.sources[rows]]
        is_predicted[rows] = fitted_without.select(validation.margins[rows], sources, precision)[0]
    return is_predicted


def score_kind(margins: np.ndarray, labels: np.ndarray, predicted: np.ndarray) -> Figures:
    """Returns the scores of one kind by name.

    The scores are n (labelled titles), titles (of the kind), average precision, precision (None without
    predictions) and recall.

    Args:
        margins: Margin of each title.
        labels: 1: title of the kind, 0: other title, -1: unknown (ignored).
        predicted: Whether the kind is predicted for each title.
    """
    rows = labels >= 0
    margins, is_kind, is_predicted = margins[rows], labels[rows] == 1, predicted[rows]
    order = np.argsort(-margins, kind="stable")
    precisions = np.cumsum(is_kind[order]) / np.arange(1, len(order) + 1)
    count = int(is_kind.sum())
    return {
        "n": int(rows.sum()),
        "titles": count,
        "average_precision": float(precisions[is_kind[order]].mean()) if count else None,
        "precision": float(is_kind[is_predicted].mean()) if is_predicted.any() else None,
        "recall": float(is_predicted[is_kind].mean()) if count else None,
    }


def kind_scores(corpus: Path) -> dict[str, dict[str, Figures]]:
    """Returns the section "kinds" of scores.json for a Corpus; empty if the Corpus has no classifier."""
    arrays, settings = read_kind_arrays(corpus) or ({}, {})
    classifier = KindClassifier.from_arrays(arrays, settings)
    splits = pq.read_table(corpus / "titles.parquet", columns=["split"])["split"].to_pylist()
    return score_kinds(classifier, splits) if classifier else {}


def score_kinds(classifier: KindClassifier, splits: Sequence[str]) -> dict[str, dict[str, Figures]]:
    """Returns the section "kinds" of scores.json: scores by kind and set of titles.

    The sets are ``all`` labelled titles and the held-out sets of the corpus.

    Args:
        classifier: Classifier with its validation titles.
        splits: Split of each title of the corpus.
    """
    validation = classifier.validation
    title_splits = np.array(splits, dtype=str)[validation.titles]
    predicted = predict_held_out(classifier)
    scores: dict[str, dict[str, Figures]] = {}
    for column, kind in enumerate(KINDS):
        if not (validation.labels[:, column] == 1).any():
            continue
        labels = validation.labels[:, column]
        sets = {
            "all": slice(None),
            **{name: title_splits == name for name in ("unseen_title", "unseen_show", "next_period")},
        }
        scores[kind] = {
            name: score_kind(validation.margins[rows, column], labels[rows], predicted[rows, column])
            for name, rows in sets.items()
        }
    return scores
