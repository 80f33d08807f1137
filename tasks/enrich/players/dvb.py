"""Determines the DVB genres of a programme (ETSI EN 300 468, table 29).

``dvb_genres.csv`` has the id of each genre, and its names in the spelling of Tvheadend. ``../etsi.csv`` maps
categories of guides to these names.
"""

import csv
import functools
from collections.abc import Iterator
from pathlib import Path

from tasks.enrich.players.base import Programme
from tasks.enrich.vocabulary import ETSI_TABLE, Names, Table, read_table

IDS = Path(__file__).with_name("dvb_genres.csv")
KINDS = {  # genre by kind of programme; a series can have any genre
    "film": "Movie / Drama",
    "news": "News / Current affairs",
    "sport": "Sports",
    "children": "Children's / Youth programs",
    "music": "Music / Ballet / Dance",
}


@functools.cache
def genre_table() -> Table:
    """Returns the vocabulary that maps categories to names of DVB genres."""
    return Table(read_table(ETSI_TABLE))


@functools.cache
def _ids() -> dict[Names, str]:
    """Reads the ids of DVB genres by their names at both levels."""
    with IDS.open(encoding="utf-8", newline="") as file:
        return {(row["level 1"], row["level 2"]): row["id"] for row in csv.DictReader(file)}


def genre_names(programme: Programme) -> tuple[str, ...]:
    """Returns the DVB genres of a programme's categories and kinds, or else its predicted genre."""
    names = genre_table().of_categories(programme.categories)
    of_kinds = (name for kind, name in KINDS.items() if kind in programme.kinds)
    return tuple(dict.fromkeys((*names, *of_kinds))) or tuple(filter(None, (programme.genre,)))


def genre_ids(category: str) -> Iterator[tuple[str, str]]:
    """Yields (text, id of its DVB genre) for each part of a category that has a genre.

    The parts are the texts that Kodi looks up: it splits categories at commas and keeps the spaces.
    """
    for piece in category.split(","):
        if genre := _id(piece):
            yield piece, genre


def _id(category: str) -> str:
    """Returns the id of the DVB genre of a category, or "" if it has none."""
    return next((_ids().get(names, "") for names in genre_table().find(category.strip())), "")
