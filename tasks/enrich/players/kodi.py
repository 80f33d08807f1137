"""Selects categories for Kodi with the add-on IPTV Simple Client, and writes a table of genres.

Kodi colours programmes by DVB genre. The add-on reads a table that maps categories to genres (genres.xml);
the bundled table is empty. The add-on looks up the categories of a programme in the order of the guide, and
uses the first category that the table contains. It refuses a guide that does not begin with an XML
declaration or a byte order mark.

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
    """Strategy for Kodi: adds a DVB genre to programmes whose categories have no DVB genre."""

    needs: ClassVar[frozenset[str]] = frozenset((DVB, DECLARATION, GENRES))
    name: Literal["kodi"] = "kodi"

    def names(self, programme: Programme) -> tuple[str, ...]:
        """Returns the name of one DVB genre, or () if a category of the programme has a genre."""
        has_genre = any(True for category in programme.categories for _ in genre_ids(category))
        return () if has_genre else genre_names(programme)[:1]


def genres_xml(categories: Iterable[str]) -> bytes:
    """Returns the content of genres.xml, the table of genres, for all categories of a guide."""
    ids = dict(pair for category in sorted(set(categories)) for pair in genre_ids(category))
    lines = [
        f'  <genre genreId="{genre}">{html.escape(text, quote=False)}</genre>'
        for text, genre in sorted(ids.items())
    ]
    head = '<?xml version="1.0" encoding="UTF-8"?>', "<genres>", "  <name>GuideSpace</name>"
    return "\n".join((*head, *lines, "</genres>", "")).encode()
