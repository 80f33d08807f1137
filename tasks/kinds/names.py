"""Looks up the kinds that the categories of guides state, in a table of several languages (names.csv).

A row of the table has one or two kinds, and the categories that state these kinds. Case is ignored. The
pattern ``film *`` stands for all categories that begin with "film ", and ``*serie`` for all categories that
end with "serie". A category that is not in the table is split at , ; / and |, and its items are looked up.
Greek accents are ignored, because Greek capitals have no accents.
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
MAX_KINDS = 3  # programmes with more kinds are damaged, and have the categories of a whole day
_ANIMATION = re.compile("anim|cartoon|zeichentrick|tecknat|tegnefilm|kreslen|rajzfilm|καρτουν|κιν. σχεδιων")
_GREEK_ACCENT = re.compile("(?<=[\u0370-\u03ff])\u0301")


@functools.lru_cache(maxsize=65_536)
def _normalize(category: str) -> str:
    """Normalizes a category: lower case without Greek accents."""
    return unicodedata.normalize("NFC", _GREEK_ACCENT.sub("", unicodedata.normalize("NFD", fold(category))))


@functools.cache
def read_names() -> dict[str, tuple[Kind, ...]]:
    """Reads names.csv. Returns the kinds by normalized category or pattern.

    Raises:
        ValueError: A row has an unknown kind, or a category has different kinds in two rows.
    """
    kinds_by_name: dict[str, tuple[Kind, ...]] = {}
    with open(TABLE, encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            kinds: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind in row["kinds"].split())
            for name in map(_normalize, row["names"].split(";")):
                if len(kinds) != len(row["kinds"].split()) or kinds_by_name.setdefault(name, kinds) != kinds:
                    raise ValueError(
                        f"{TABLE.name}: the category {name!r} has the kinds {row['kinds']!r}; expected kinds "
                        f"among {', '.join(KINDS)}, and only one row per category"
                    )
    return kinds_by_name


@functools.cache
def _read_patterns() -> list[tuple[str, str, tuple[Kind, ...]]]:
    """Returns (text before *, text after *, kinds) for each pattern in names.csv."""
    patterns = ((*name.split("*"), kinds) for name, kinds in read_names().items() if "*" in name)
    return [(begin, end, kinds) for begin, end, kinds in patterns]


def _find_kinds(category: str) -> tuple[Kind, ...] | None:
    """Returns the kinds of a category that is not a list, or None if neither a name nor a pattern matches."""
    key = _normalize(category)
    if (kinds := read_names().get(key)) is not None:
        return kinds
    patterns = _read_patterns()
    return next(
        (kinds for begin, end, kinds in patterns if key.startswith(begin) and key.endswith(end)), None
    )


@functools.lru_cache(maxsize=65_536)
def kinds_of_category(category: str) -> tuple[Kind, ...]:
    """Returns the kinds that a category states; () if it states no kind."""
    if (kinds := _find_kinds(category)) is not None:
        return kinds
    item_kinds = (_find_kinds(item) or () for item in split_list(category))
    return tuple(dict.fromkeys(kind for kinds in item_kinds for kind in kinds))


def kinds_of_categories(categories: Iterable[str]) -> set[Kind]:
    """Returns the kinds that the categories of a programme state; none if there are more than MAX_KINDS."""
    kinds: set[Kind] = {kind for category in categories for kind in kinds_of_category(category)}
    return kinds if len(kinds) <= MAX_KINDS else set()


def is_animation(categories: Iterable[str]) -> bool:
    """Returns whether a category means animation, for children or for adults."""
    return any(_ANIMATION.search(_normalize(category)) for category in categories)
