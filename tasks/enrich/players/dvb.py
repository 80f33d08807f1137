"""Determines the DVB genres of a programme (ETSI EN 300 468, table 29).

``dvb_genres.csv`` has the id of each genre and its name at both levels, in the spelling of Tvheadend.
``../etsi.csv`` maps categories of guides to these names.
"""

import csv
import functools
from collections.abc import Iterator
from pathlib import Path

from tasks.enrich.players.base import Programme
from tasks.enrich.vocabulary import ETSI_TABLE, Names, Table, read_table

GENRES_TABLE = Path(__file__).with_name("dvb_genres.csv")
GENRE_OF_KIND = {  # genre by kind of programme; a series can have any genre
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
def _read_genre_ids() -> dict[Names, str]:
    """Reads the ids of DVB genres. Returns them by (name at level 1, name at level 2)."""
    with GENRES_TABLE.open(encoding="utf-8", newline="") as file:
        return {(row["level 1"], row["level 2"]): row["id"] for row in csv.DictReader(file)}


def genre_names(programme: Programme) -> tuple[str, ...]:
    """Returns the names of the DVB genres of a programme.

    These are the genres of its categories and kinds or, if there are none, its predicted genre.
    """
    names = genre_table().of_categories(programme.categories)
    names_of_kinds = (name for kind, name in GENRE_OF_KIND.items() if kind in programme.kinds)
    return tuple(dict.fromkeys((*names, *names_of_kinds))) or tuple(filter(None, (programme.genre,)))


def genre_ids(category: str) -> Iterator[tuple[str, str]]:
    """Yields (item, id of the item's DVB genre) for each item of a category such as "Drama, Crime".

    Items without a genre are omitted. Like Kodi, this splits categories at commas and keeps the spaces.
    """
    for item in category.split(","):
        genre_id = next(map(_read_genre_ids().get, genre_table().find_names(item.strip())), None)
        if genre_id:
            yield item, genre_id
