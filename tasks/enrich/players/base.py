"""What the strategy of a player sees of a programme, and what every strategy answers."""

from dataclasses import dataclass
from typing import ClassVar

# What a player needs in addition to categories: episode numbers, an XML declaration, a file that maps
# categories to genres of DVB. DVB means that its categories are genres of DVB.
NUMBER, DECLARATION, GENRES, DVB = "episode-num", "XML declaration", "genres.xml", "genres of DVB"


@dataclass(frozen=True, kw_only=True)
class Programme:
    """A programme before names for players are added.

    Attributes:
        categories: Categories of the guide, or those that fill the gap.
        kinds: Kinds of the programme: film, series, news, sport, children, music.
        numbered: Whether the programme has an episode number, or gets one.
        genre: Name of the DVB genre that the nearest titles have; empty if unknown.
    """

    categories: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    numbered: bool = False
    genre: str = ""


class PlayerRules:
    """Base class of the strategies. By default, a player needs categories only."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def names(self, programme: Programme) -> tuple[str, ...]:
        """Returns the categories that are added to a programme."""
        raise NotImplementedError

    def excludes_number(self, category: str) -> bool:
        """Returns whether a programme with this category must not have an episode number."""
        return False
