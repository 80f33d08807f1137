"""Groups the editions of a show in a ranked list of titles: MasterChef Australia "and 3 more editions".

Titles are editions of one show if one of these conditions is true:

- their names are equal before a colon or dash ("Law & Order: Special Victims Unit")
- they differ only in a numeral, a year, or a word for a country, a cast or an occasion ("MasterChef
  Australia", "Celebrity MasterChef")
- one title begins with the full name of another title that has at least two content words ("House Hunters
  Renovation", "House Hunters")

Sports fixtures without a heading ("Inter - Udinese") are grouped by the same rules. "The Good Wife" and "The
Good Place" are not editions of one show.
"""

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tasks.text.titles import FUNCTION_WORDS, parse_title

_SEPARATOR = re.compile(r"\s*[:|](?!\d)\s*|\s+[-–—]\s+")  # colon, bar or dash
_NUMERAL = re.compile(r"\d|1\d|i{2,3}|iv|vi{0,3}|ix|(19|20)\d\d")  # 0 to 19, ii to ix, or a year
_PREPOSITIONS = frozenset("of at with mit avec con med met com".split())  # noqa: SIM905


class EditionGroup(NamedTuple):
    """Positions of the editions of one show in a ranked list of titles."""

    first: int  # position of the best-ranked edition
    others: tuple[int, ...]  # positions of all other editions, ascending


def group_editions(titles: Sequence[str]) -> list[EditionGroup]:
    """Groups a ranked list of titles by show. Groups are ordered by the rank of their best edition."""
    parsed_names = list(map(_parse_name, titles))
    full_names = {name for name, is_full, _ in parsed_names if is_full}
    groups: dict[str, list[int]] = {}
    for position, (show, _, prefixes) in enumerate(parsed_names):
        for prefix in prefixes:
            if prefix in full_names:
                show = prefix
                break
        groups.setdefault(show, []).append(position)
    return [EditionGroup(first, tuple(others)) for first, *others in groups.values()]


@functools.lru_cache(maxsize=65536)
def _parse_name(title: str) -> tuple[str, bool, list[str]]:
    """Returns the result of ``show_name``, and the prefixes of the name, the shortest first.

    A prefix has at least two content words. Headings such as "news" are not content words, so "sky news" is
    not a prefix.
    """
    (name, is_full), (_, headings) = show_name(title), _load_words()
    words = name.split()
    ends = range(2, len(words) + 1)
    prefixes = [" ".join(words[:end]) for end in ends if len(_content_words(words[:end]) - headings) >= 2]
    return name, is_full, prefixes


@functools.lru_cache(maxsize=65536)
def show_name(title: str) -> tuple[str, bool]:
    """Returns the case-folded name that all editions of a show have in common, and whether it is complete.

    A name is cut before a preposition, and then not complete: "The Real Housewives of Atlanta" gives "the
    real housewives".
    """
    key = parse_title(title).show_key
    editions, headings = _load_words()
    words = name = parse_title(_SEPARATOR.split(title, maxsplit=1)[0]).show_key.split()
    if not _content_words(words) - headings:
        return key, True  # "Football: Marseille - Lyon" is not an edition of a show named Football
    while len(name) > 1 and _NUMERAL.fullmatch(name[-1]):
        name = name[:-1]
    while len(name) > 1 and name[-1] in editions and name[-2] not in FUNCTION_WORDS:  # not "Made in Germany"
        name = name[:-1]
    while len(name) > 1 and name[0] in editions:
        name = name[1:]
    if not _content_words(name) - headings:
        name = words
    preposition_indices = (index for index, word in enumerate(name) if word in _PREPOSITIONS)
    end = next((index for index in preposition_indices if len(_content_words(name[:index])) >= 2), len(name))
    return " ".join(name[:end]), end == len(name)


def _content_words(words: Sequence[str]) -> set[str]:
    return {word for word in words if len(word) > 1 and word not in FUNCTION_WORDS}


@functools.cache
def _load_words() -> tuple[frozenset[str], frozenset[str]]:
    """Reads words that mark editions ("celebrity") and generic headings ("news") from editions.txt."""
    text = Path(__file__).with_name("editions.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    _, editions, headings = re.split(r"\[\w+\]", "\n".join(lines))
    return frozenset(editions.split()), frozenset(headings.split())
