"""Determines the kinds of titles and of programmes from categories, episode numbers and predictions."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from tasks.kinds.classifier import KindClassifier
from tasks.kinds.evidence import Evidence
from tasks.kinds.kinds import KINDS, Kind, KindPrediction, combine
from tasks.kinds.names import kinds_of_categories
from tasks.kinds.precision import PRECISION


def kinds_of_programme(
    title_kinds: Iterable[KindPrediction], categories: Iterable[str], numbered: bool
) -> tuple[KindPrediction, ...]:
    """Returns the kinds of one programme.

    The kinds that its categories state have probability 1. The kinds of its title are added unless they
    contradict the categories. A programme with an episode number is a film only if its categories state this
    kind.

    Args:
        title_kinds: Kinds of the programme's title, from all airings of the title.
        categories: Categories of the programme.
        numbered: Whether the programme has a readable episode number (storage/episodes).
    """
    stated_kinds = combine(kinds_of_categories(categories), numbered)
    by_kind: dict[Kind, KindPrediction] = {}
    by_kind |= {kind: KindPrediction(kind, 1.0, "guide") for kind in stated_kinds}
    for prediction in title_kinds:
        if prediction.kind not in by_kind and is_compatible(prediction.kind, stated_kinds, numbered):
            by_kind[prediction.kind] = prediction
    if numbered and "series" not in by_kind and not {"film", "news", "sport"} & {*by_kind}:
        by_kind["series"] = KindPrediction("series", 1.0, "structure")
    return tuple(by_kind[kind] for kind in combine(by_kind, numbered))


def is_compatible(kind: Kind, stated: Collection[Kind], numbered: bool) -> bool:
    """Returns whether a programme can have ``kind`` in addition to the kinds that its categories state."""
    if kind == "film":
        return not numbered and {*stated} <= {"children"}
    return not stated if kind == "other" else kind == "children" or "film" not in stated


def decide_kinds(
    evidence: Evidence,
    margins: np.ndarray,
    classifier: KindClassifier | None,
    sources: Sequence[str],
    precision: Mapping[Kind, float] = PRECISION,
) -> list[tuple[KindPrediction, ...]]:
    """Returns the kinds of each title: the kinds that guides state, and predicted kinds.

    Args:
        evidence: Kinds that the categories in guides state.
        margins: Margins of the classifier, (titles, kinds); -inf for titles for which nothing is predicted.
        classifier: Classifier with thresholds and probabilities; None: nothing is predicted.
        sources: Main feed of each title.
        precision: Minimum precision of the predictions of each kind.
    """
    stated, numbered = evidence.stated, evidence.is_numbered
    is_predicted, probabilities = np.zeros(stated.shape, dtype=bool), np.zeros(stated.shape)
    if classifier:
        is_predicted, probabilities = _predict(evidence, margins, classifier, sources, precision)
    kinds: list[tuple[KindPrediction, ...]] = []
    for title, is_numbered in enumerate(numbered.tolist()):
        by_kind: dict[Kind, KindPrediction] = {
            kind: KindPrediction(kind, 1.0, "guide")
            for kind, is_stated in zip(KINDS, stated[title], strict=True)
            if is_stated
        }
        if is_numbered and not {"film", "series", "news", "sport"} & {*by_kind}:
            by_kind["series"] = KindPrediction("series", 1.0, "structure")
        confident_kinds: list[Kind] = [*by_kind]
        for column in np.flatnonzero(is_predicted[title]).tolist():
            if is_compatible(kind := KINDS[column], confident_kinds, is_numbered):
                by_kind[kind] = KindPrediction(kind, float(probabilities[title, column]), "predicted")
        kinds.append(tuple(by_kind[kind] for kind in combine(by_kind, is_numbered)))
    return kinds


def _predict(
    evidence: Evidence,
    margins: np.ndarray,
    classifier: KindClassifier,
    sources: Sequence[str],
    precision: Mapping[Kind, float],
) -> tuple[np.ndarray, np.ndarray]:
    """Predicts kinds of titles; a kind that contradicts the guides is not predicted.

    Returns:
        Whether each kind is predicted, bool (titles, kinds), and probabilities, float64 (titles, kinds).
    """
    is_predicted, probabilities = classifier.select(margins, sources, precision)
    is_predicted &= evidence.labels() < 0
    film, series = KINDS.index("film"), KINDS.index("series")
    is_predicted[evidence.is_numbered, film] = False
    is_both = is_predicted[:, film] & is_predicted[:, series]
    is_film = probabilities[:, film] > probabilities[:, series]
    is_predicted[is_both & is_film, series] = is_predicted[is_both & ~is_film, film] = False
    return is_predicted, probabilities
