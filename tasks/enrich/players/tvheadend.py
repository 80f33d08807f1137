"""Selects categories for Tvheadend, which recognizes the names of DVB genres.

References:
    https://github.com/tvheadend/tvheadend, src/epg.c: Tvheadend compares categories with the names of DVB
    genres, ignoring case and spaces. All other categories have no genre.
"""

from typing import ClassVar, Literal

from tasks.enrich.players.base import DVB, PlayerRules, Programme
from tasks.enrich.players.dvb import genre_names
from tasks.form import configurable


@configurable
class Tvheadend(PlayerRules):
    """Strategy for Tvheadend: adds the names of all DVB genres of a programme."""

    needs: ClassVar[frozenset[str]] = frozenset((DVB,))
    name: Literal["tvheadend"] = "tvheadend"

    def names(self, programme: Programme) -> tuple[str, ...]:
        """Returns the names of the programme's DVB genres that are not among its categories."""
        existing_names = {_fold(category) for category in programme.categories}
        return tuple(name for name in genre_names(programme) if _fold(name) not in existing_names)


def _fold(category: str) -> str:
    """Normalizes a category as Tvheadend does: lower case without spaces."""
    return "".join(category.split()).casefold()
