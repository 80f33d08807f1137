"""Defines the settings for enriching a guide."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from tasks.enrich.errors import EnrichError
from tasks.enrich.players import PLAYERS, Player
from tasks.enrich.players.base import NUMBER
from tasks.enrich.vocabulary import GUIDE_VOCABULARY
from tasks.form import configurable, setting
from tasks.kinds.precision import KindPrecision

_VOCABULARY_DESCRIPTION = (
    "Names of added categories: own (as in the guide), etsi (EN 300 468), or the path of a CSV file with the "
    "column raw and a column of names per level"
)
_PLAYERS_DESCRIPTION = (
    "Players that read the output: the categories that they know are added to all programmes, including "
    "programmes that have categories"
)
_PRECISION_DESCRIPTION = (
    "Minimum precision of predicted categories; a higher precision fills fewer programmes"
)
_KINDS_DESCRIPTION = (
    "Minimum precision of predicted kinds of programmes, from which categories for players follow"
)


@configurable
class EnrichOptions:
    """Options that select which elements are added to a guide."""

    vocabulary: str = setting(GUIDE_VOCABULARY, _VOCABULARY_DESCRIPTION)
    every: bool = setting(
        False,
        "Also add names of the vocabulary to programmes that have categories, for players that know only "
        "these names",
    )
    players: tuple[Player, ...] = setting((), _PLAYERS_DESCRIPTION)
    minimum_precision: float = setting(0.9, _PRECISION_DESCRIPTION, gt=0, le=1)
    kind_precision: KindPrecision = setting(KindPrecision(), _KINDS_DESCRIPTION)
    mark: bool = setting(False, "Add a comment after each added element")
    episodes: bool = setting(False, "Also add episode numbers from other airings of the same episode")

    def __post_init__(self) -> None:
        for precision in (self.minimum_precision, *vars(self.kind_precision).values()):
            if not 0 < precision <= 1:
                raise EnrichError(f"minimum precision {precision}: expected a number above 0, at most 1")
        if self.every and self.vocabulary == GUIDE_VOCABULARY:
            raise EnrichError(
                "names of the guide itself cannot be added to existing categories; name another vocabulary"
            )

    @property
    def changes_all(self) -> bool:
        """Whether categories are also added to programmes that have categories in the guide."""
        return self.every or bool(self.players)

    @property
    def adds_numbers(self) -> bool:
        """Whether missing episode numbers are added."""
        return self.episodes or self.needs(NUMBER)

    def needs(self, addition: str) -> bool:
        """Returns whether a player needs NUMBER, DECLARATION, GENRES or DVB (see players/base.py)."""
        return any(addition in player.needs for player in self.players)


def make_players(names: Collection[str]) -> tuple[Player, ...]:
    """Creates the players with the given names; a repeated name is ignored.

    Raises:
        EnrichError: A name is unknown.
    """
    if unknown_names := [name for name in names if name not in PLAYERS]:
        raise EnrichError(f"unknown player {unknown_names[0]!r}; expected one of {', '.join(PLAYERS)}")
    return tuple(PLAYERS[name]() for name in dict.fromkeys(names))


def set_precision(options: EnrichOptions, values: Sequence[str]) -> EnrichOptions:
    """Returns options with the minimum precisions that the values of ``--min-precision`` set.

    A value such as "0.95" sets the precision of categories, "film=0.99" the precision of a kind of programme.

    Raises:
        EnrichError: A kind is unknown, or a precision is not a number above 0 and at most 1.
    """
    for value in values:
        kind, _, number = value.rpartition("=")
        if kind and kind not in vars(options.kind_precision):
            kinds = ", ".join(vars(options.kind_precision))
            raise EnrichError(f"--min-precision {value}: unknown kind {kind!r}; expected one of {kinds}")
        try:
            precision = float(number)
        except ValueError:
            raise EnrichError(
                f"--min-precision {value}: expected a number such as 0.9, or a kind and a number such "
                "as film=0.99"
            ) from None
        if kind:
            options = replace(options, kind_precision=replace(options.kind_precision, **{kind: precision}))
        else:
            options = replace(options, minimum_precision=precision)
    return options
