"""Defines the base class of player strategies, which select categories to add, and their input."""

from dataclasses import dataclass
from typing import ClassVar

# What a player needs in addition to categories: episode numbers, an XML declaration, or a file that maps
# categories to DVB genres. DVB means that the categories of the player are DVB genres.
NUMBER, DECLARATION, GENRES, DVB = "episode-num", "XML declaration", "genres.xml", "genres of DVB"


@dataclass(frozen=True, kw_only=True)
class Programme:
    """Programme for which a player strategy selects categories.

    Attributes:
        categories: Categories of the guide, or the predicted categories if the guide has none.
        kinds: Kinds of the programme: film, series, news, sport, children, music.
        numbered: Whether the programme has an episode number, or gets one.
        genre: Name of the predicted DVB genre; "" if unknown.
    """

    categories: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    numbered: bool = False
    genre: str = ""


class PlayerRules:
    """Base class of player strategies; by default, a player needs only categories."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def names(self, programme: Programme) -> tuple[str, ...]:
        """Returns the categories to add to a programme for this player."""
        raise NotImplementedError

    def excludes_number(self, category: str) -> bool:
        """Returns whether a programme with this category must not have an episode number."""
        return False
