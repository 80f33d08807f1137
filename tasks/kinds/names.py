"""Looks up the kinds that the categories of guides state in a table of several languages (names.csv).

A row of the table has one or two kinds and the categories that state them. Categories are compared without
regard to case. The pattern ``film *`` matches all categories that begin with "film ", and ``*serie`` all that
end with "serie". A category that is not in the table is split at , ; / and |, and its parts are looked up.
Greek accents are ignored, because capitals have none.
"""

import csv
import functools
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from tasks.kinds.kinds import KINDS, Kind
from tasks.text.categories import fold, split_list

TABLE = Path(__file__).with_name("names.csv")
MAX_KINDS = 3  # maximum kinds of a programme; damaged programmes have the categories of a day
_ANIMATION = re.compile("anim|cartoon|zeichentrick|tecknat|tegnefilm|kreslen|rajzfilm|καρτουν|κιν. σχεδιων")
_TONOS = re.compile("(?<=[\u0370-\u03ff])\u0301")


@functools.lru_cache(maxsize=65_536)
def _key(category: str) -> str:
    """Normalizes a category: lower case without Greek accents."""
    return unicodedata.normalize("NFC", _TONOS.sub("", unicodedata.normalize("NFD", fold(category))))


@functools.cache
def read_names() -> dict[str, tuple[Kind, ...]]:
    """Reads names.csv. Returns the kinds by normalized category or pattern.

    Raises:
        ValueError: A row has an unknown kind, or two rows differ about a category.
    """
    kinds_by_name: dict[str, tuple[Kind, ...]] = {}
    with open(TABLE, encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            kinds: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind in row["kinds"].split())
            for name in map(_key, row["names"].split(";")):
                if len(kinds) != len(row["kinds"].split()) or kinds_by_name.setdefault(name, kinds) != kinds:
                    raise ValueError(
                        f"{TABLE.name}: {name!r} has the kinds {row['kinds']!r}; expected kinds of "
                        f"{', '.join(KINDS)}, and every name only once"
                    )
    return kinds_by_name


@functools.cache
def _read_patterns() -> list[tuple[str, str, tuple[Kind, ...]]]:
    """Returns (beginning, end, kinds) of the patterns in names.csv."""
    patterns = ((*name.split("*"), kinds) for name, kinds in read_names().items() if "*" in name)
    return [(begin, end, kinds) for begin, end, kinds in patterns]


def _find_kinds(value: str) -> tuple[Kind, ...] | None:
    """Returns the kinds of a normalized category, or None if names.csv has no such name or pattern."""
    if (kinds := read_names().get(value)) is not None:
        return kinds
    matches = (
        kinds for begin, end, kinds in _read_patterns() if value.startswith(begin) and value.endswith(end)
    )
    return next(matches, None)


@functools.lru_cache(maxsize=65_536)
def kinds_of_category(category: str) -> tuple[Kind, ...]:
    """Returns the kinds that a category states; empty if it states none."""
    if (kinds := _find_kinds(_key(category))) is not None:
        return kinds
    parts = (_find_kinds(_key(item)) or () for item in split_list(category))
    return tuple(dict.fromkeys(kind for kinds in parts for kind in kinds))


def kinds_of_categories(categories: Iterable[str]) -> set[Kind]:
    """Returns the kinds that the categories of a programme state; empty for more than MAX_KINDS kinds."""
    kinds: set[Kind] = {kind for category in categories for kind in kinds_of_category(category)}
    return kinds if len(kinds) <= MAX_KINDS else set()


def is_animation(categories: Iterable[str]) -> bool:
    """Returns whether one of the categories means animation, for children or for adults."""
    return any(_ANIMATION.search(_key(category)) for category in categories)
