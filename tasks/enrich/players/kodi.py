"""Selects categories for Kodi with the add-on IPTV Simple Client, and writes a table of genres.

Kodi colours programmes by DVB genre. The add-on reads a table that maps categories to genres (genres.xml);
the table that it ships is empty. The add-on looks up the categories in the order of the guide and uses the
first one that the table contains. It refuses a guide that does not begin with an XML declaration or a byte
order mark.

References:
    https://github.com/kodi-pvr/pvr.iptvsimple, README.md and src/iptvsimple/data/EpgEntry.cpp
"""

import html
from collections.abc import Iterable
from typing import ClassVar, Literal

from tasks.enrich.players.base import DECLARATION, DVB, GENRES, PlayerRules, Programme
from tasks.enrich.players.dvb import genre_ids, genre_names
from tasks.form import configurable


@configurable
class Kodi(PlayerRules):
    """Strategy for Kodi: adds a DVB genre to programmes that have no category with a genre."""

    needs: ClassVar[frozenset[str]] = frozenset((DVB, DECLARATION, GENRES))
    name: Literal["kodi"] = "kodi"

    def names(self, programme: Programme) -> tuple[str, ...]:
        """Returns the name of a DVB genre, or nothing if a category of the programme has a genre."""
        has_genre = any(True for category in programme.categories for _ in genre_ids(category))
        return () if has_genre else genre_names(programme)[:1]


def genres_xml(categories: Iterable[str]) -> bytes:
    """Returns the table of genres (genres.xml) for all categories of a guide."""
    ids = dict(pair for category in sorted(set(categories)) for pair in genre_ids(category))
    lines = [
        f'  <genre genreId="{genre}">{html.escape(text, quote=False)}</genre>'
        for text, genre in sorted(ids.items())
    ]
    head = '<?xml version="1.0" encoding="UTF-8"?>', "<genres>", "  <name>GuideSpace</name>"
    return "\n".join((*head, *lines, "</genres>", "")).encode()
