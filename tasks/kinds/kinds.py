"""The kinds of programmes, and the rules by which they combine.

Players treat a film and an episode differently: a film has no episode number and is never part of a series
recording. A programme has several kinds (children's film, sports news) or none if nothing is known:

- A film is no series, news, sport or music programme; it may be for children.
- ``other`` stands alone: a programme that is none of the other kinds.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["film", "series", "news", "sport", "children", "music", "other"]
KindSource = Literal["guide", "structure", "predicted"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class KindPrediction:
    """A kind of a programme.

    Attributes:
        kind: The kind.
        probability: Probability that it is correct; 1 if the guide states it.
        source: ``guide``: a category of the guide states it (names.csv); ``structure``: most airings have an
            episode number; ``predicted``: the classifier (classifier.py).
    """

    kind: Kind
    probability: float
    source: KindSource


def combine(stated: Iterable[Kind], numbered: bool) -> tuple[Kind, ...]:
    """Returns the kinds that categories state, without contradictions, in the order of KINDS.

    If they state both film and series, an episode number decides; without a number, neither is returned.
    """
    kinds = set(stated)
    if {"film", "series"} <= kinds:
        kinds -= {"film"} if numbered else {"film", "series"}
    return tuple(kind for kind in KINDS if kind in kinds and not excluded(kind, kinds))


def excluded(kind: Kind, kinds: Collection[Kind]) -> bool:
    """Returns whether the other kinds of a programme exclude ``kind``."""
    others = set(kinds) - {kind}
    if kind == "other":
        return bool(others)
    return kind not in ("film", "children") and "film" in others
