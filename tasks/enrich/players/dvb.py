"""Genres of DVB (ETSI EN 300 468, table 29) of a programme.

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
KINDS = {  # a series can have any genre
    "film": "Movie / Drama",
    "news": "News / Current affairs",
    "sport": "Sports",
    "children": "Children's / Youth programs",
    "music": "Music / Ballet / Dance",
}


@functools.cache
def genre_table() -> Table:
    """Returns the table that maps categories to names of genres."""
    return Table(read_table(ETSI_TABLE))


@functools.cache
def _ids() -> dict[Names, str]:
    with IDS.open(encoding="utf-8", newline="") as file:
        return {(row["level 1"], row["level 2"]): row["id"] for row in csv.DictReader(file)}


def genre_names(programme: Programme) -> tuple[str, ...]:
    """Returns the genres of the categories, then those of the kinds; if there are none, that of the vote."""
    names = genre_table().of_categories(programme.categories)
    of_kinds = (name for kind, name in KINDS.items() if kind in programme.kinds)
    return tuple(dict.fromkeys((*names, *of_kinds))) or tuple(filter(None, (programme.genre,)))


def genre_ids(category: str) -> Iterator[tuple[str, str]]:
    """Yields the texts that Kodi looks up for a category and that have a genre, with the genre's id.

    Kodi splits categories at commas and keeps the spaces.
    """
    for piece in category.split(","):
        if genre := _id(piece):
            yield piece, genre


def _id(category: str) -> str:
    return next((_ids().get(names, "") for names in genre_table().find(category.strip())), "")
