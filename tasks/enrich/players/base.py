"""Defines the base class of player strategies, and the description of a programme from which they select."""

from dataclasses import dataclass
from typing import ClassVar

# Needs of players: episode numbers, an XML declaration, a file that maps categories to DVB genres, and
# predictions of DVB genres (because the categories that the player knows are names of DVB genres).
NUMBER, DECLARATION, GENRES, DVB = "episode-num", "XML declaration", "genres.xml", "genres of DVB"


@dataclass(frozen=True, kw_only=True)
class Programme:
    """Programme for which a player strategy selects categories.

    Attributes:
        categories: Categories of the programme in the guide; if it has none, the categories to add.
        kinds: Kinds of the programme: film, series, news, sport, children, music.
        numbered: Whether the programme has an episode number, or gets one.
        genre: Name of the predicted DVB genre; "" if unknown.
    """

    categories: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    numbered: bool = False
    genre: str = ""


class PlayerRules:
    """Base class of player strategies. By default, a player needs only categories."""

    needs: ClassVar[frozenset[str]] = frozenset()  # subset of NUMBER, DECLARATION, GENRES and DVB

    def names(self, programme: Programme) -> tuple[str, ...]:
        """Returns the names of the categories to add to a programme for this player."""
        raise NotImplementedError

    def excludes_number(self, category: str) -> bool:
        """Returns whether a programme with this category must not have an episode number."""
        return False
