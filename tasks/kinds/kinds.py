"""Defines the kinds of programmes, and the rules by which kinds may be combined.

Players treat films and episodes differently: a film has no episode number and is never recorded as part of a
series. A programme may have several kinds (children's film, sports news), or none if nothing is known about
it. Two rules apply:

- A film is not a series, news, sport or music programme, but it may be for children.
- ``other`` is not combined with another kind. It is the kind of a programme that has none of the others.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["film", "series", "news", "sport", "children", "music", "other"]
KindSource = Literal["guide", "structure", "predicted"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class KindPrediction:
    """Kind of a programme or title, with its probability and source.

    Attributes:
        kind: Kind.
        probability: Probability that the kind is correct; 1 if the guide states the kind.
        source: ``guide``: a category of the guide states the kind (names.csv); ``structure``: airings have an
            episode number; ``predicted``: the classifier predicts the kind (classifier.py).
    """

    kind: Kind
    probability: float
    source: KindSource


def combine(stated: Iterable[Kind], numbered: bool) -> tuple[Kind, ...]:
    """Removes contradictory kinds from the kinds that categories state, and sorts the others as in KINDS.

    If film and series are both stated, series is returned for a programme with an episode number
    (``numbered``), else neither.
    """
    kinds = set(stated)
    if {"film", "series"} <= kinds:
        kinds -= {"film"} if numbered else {"film", "series"}
    return tuple(kind for kind in KINDS if kind in kinds and not contradicts(kind, kinds))


def contradicts(kind: Kind, kinds: Collection[Kind]) -> bool:
    """Returns whether ``kind`` contradicts ``kinds``, so that a programme cannot have both."""
    other_kinds = set(kinds) - {kind}
    if kind == "other":
        return bool(other_kinds)
    return kind not in ("film", "children") and "film" in other_kinds
