"""Defines the kinds of programmes, and the rules by which kinds may be combined.

Players treat films and episodes differently: a film has no episode number and is never recorded as part of a
series. A programme may have several kinds (a children's film, sports news), or no kind if nothing is known
about it. Two rules apply:

- A film may also be a children's programme, but has no other second kind.
- A programme of the kind ``other`` has none of the other kinds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["film", "series", "news", "sport", "children", "music", "other"]
KindSource = Literal["guide", "structure", "predicted"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class KindPrediction:
    """Kind of a programme or title, with its probability and source.

    Attributes:
        kind: The kind.
        probability: Probability that the kind is correct; 1 if the guide states the kind.
        source: ``guide`` if a category in the guide states the kind (names.csv), ``structure`` if the kind
            follows from an episode number, ``predicted`` if the classifier predicts it (classifier.py).
    """

    kind: Kind
    probability: float
    source: KindSource


def combine(stated: Iterable[Kind], numbered: bool) -> tuple[Kind, ...]:
    """Returns the kinds of a programme from the kinds that are stated for it, without contradictions.

    If both film and series are stated, a programme with an episode number (``numbered``) is a series, and a
    programme without a number is neither. In other contradictions, film has precedence, and ``other`` is
    removed. The result is in the order of KINDS.
    """
    kinds = set(stated)
    if {"film", "series"} <= kinds:
        kinds -= {"film"} if numbered else {"film", "series"}
    if "film" in kinds:
        kinds &= {"film", "children"}
    elif len(kinds) > 1:
        kinds -= {"other"}
    return tuple(kind for kind in KINDS if kind in kinds)
