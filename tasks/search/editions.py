"""Groups editions of one show in a ranked list into one line: MasterChef Australia "and 3 more editions".

Titles are editions of one show if their names are equal before a colon or dash ("Law & Order: Special Victims
Unit"), if they differ only in a word for a country, cast or occasion, a numeral or a year ("MasterChef
Australia", "Celebrity MasterChef"), or if one begins with the full name of another of at least two content
words ("House Hunters Renovation"). The family of a title (its first content word), which keeps franchises on
one side of a split, is much wider: "The Good Wife" and "The Good Place" are one family but not editions.
Fixtures without a heading ("Inter - Udinese") are grouped like editions.
"""

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tasks.text.titles import FUNCTION_WORDS, parse_title

_SEPARATOR = re.compile(r"\s*[:|](?!\d)\s*|\s+[-–—]\s+")
_NUMERAL = re.compile(r"\d|1\d|i{2,3}|iv|vi{0,3}|ix|(19|20)\d\d")
_PREPOSITIONS = frozenset("of at with mit avec con med met com".split())  # noqa: SIM905


class Fold(NamedTuple):
    """Positions in a ranked list of the editions of one show: the nearest, then the others in order."""

    first: int
    others: tuple[int, ...]


def fold_editions(titles: Sequence[str]) -> list[Fold]:
    """Groups display titles, nearest first, by show; a show has the position of its nearest edition."""
    parsed = list(map(_parse_name, titles))
    full_names = {name for name, is_full, _ in parsed if is_full}
    folds: dict[str, list[int]] = {}
    for position, (show, _, beginnings) in enumerate(parsed):
        for part in beginnings:
            if part in full_names:
                show = part
                break
        folds.setdefault(show, []).append(position)
    return [Fold(first, tuple(others)) for first, *others in folds.values()]


@functools.lru_cache(maxsize=65536)
def _parse_name(title: str) -> tuple[str, bool, list[str]]:
    """Returns ``show_name`` and the prefixes of the name with at least two content words, shortest first.

    Headings are not content words, so "sky news" is not a prefix.
    """
    (name, is_full), (_, headings) = show_name(title), _load_words()
    words = name.split()
    cuts = range(2, len(words) + 1)
    beginnings = [" ".join(words[:cut]) for cut in cuts if len(_content_words(words[:cut]) - headings) >= 2]
    return name, is_full, beginnings


@functools.lru_cache(maxsize=65536)
def show_name(title: str) -> tuple[str, bool]:
    """Returns the case-folded name that identifies the show, and whether it can be a full show name.

    The name of "The Real Housewives of Atlanta", "the real housewives", is not a full name.
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
    cuts = (index for index, word in enumerate(name) if word in _PREPOSITIONS)
    cut = next((index for index in cuts if len(_content_words(name[:index])) >= 2), len(name))
    return " ".join(name[:cut]), cut == len(name)


def _content_words(words: Sequence[str]) -> set[str]:
    return {word for word in words if len(word) > 1 and word not in FUNCTION_WORDS}


@functools.cache
def _load_words() -> tuple[frozenset[str], frozenset[str]]:
    """Loads the two word lists of editions.txt: editions and headings."""
    text = Path(__file__).with_name("editions.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    _, editions, headings = re.split(r"\[\w+\]", "\n".join(lines))
    return frozenset(editions.split()), frozenset(headings.split())
