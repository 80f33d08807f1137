"""Editions of one show in a ranked list, folded into one line: MasterChef Australia "and 3 more editions".

Editions share the name before a colon or dash ("Law & Order: Special Victims Unit"), a name that differs in a
word for countries, casts or occasions, a numeral or a year ("MasterChef Australia", "Celebrity MasterChef"),
or begin with another's whole name of two telling words or more ("House Hunters Renovation"). The family of a
title (its first content word), which keeps franchises on one side of a split, is much wider: "The Good Wife"
and "The Good Place" are one family and no editions. Fixtures without a heading ("Inter - Udinese") look like
editions and are folded.
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
    """Places in a ranked list of the editions of one show: the nearest, and the others, nearest first."""

    first: int
    others: tuple[int, ...]


def fold_editions(titles: Sequence[str]) -> list[Fold]:
    """Groups titles (as people read them, nearest first) by show, each where its nearest edition stood."""
    named = list(map(_named, titles))
    whole = {name for name, is_whole, _ in named if is_whole}
    folds: dict[str, list[int]] = {}
    for place, (show, _, beginnings) in enumerate(named):
        for part in beginnings:
            if part in whole:
                show = part
                break
        folds.setdefault(show, []).append(place)
    return [Fold(first, tuple(others)) for first, *others in folds.values()]


@functools.lru_cache(maxsize=65536)
def _named(title: str) -> tuple[str, bool, list[str]]:
    """``show_name``, and the name's beginnings of two telling words or more, shortest first; "sky news" is
    none, as news are a heading.
    """
    (name, is_whole), (_, headings) = show_name(title), _listed()
    words = name.split()
    cuts = range(2, len(words) + 1)
    beginnings = [" ".join(words[:cut]) for cut in cuts if len(_contents(words[:cut]) - headings) >= 2]
    return name, is_whole, beginnings


@functools.lru_cache(maxsize=65536)
def show_name(title: str) -> tuple[str, bool]:
    """Case-folded words by which editions of one show are recognised, and whether they may be a show's whole
    name, which those of "The Real Housewives of Atlanta" ("the real housewives") are not.
    """
    key = parse_title(title).show_key
    editions, headings = _listed()
    words = kept = parse_title(_SEPARATOR.split(title, maxsplit=1)[0]).show_key.split()
    if not _contents(words) - headings:
        return key, True  # "Football: Marseille - Lyon" is no edition of a show called Football
    while len(kept) > 1 and _NUMERAL.fullmatch(kept[-1]):
        kept = kept[:-1]
    while len(kept) > 1 and kept[-1] in editions and kept[-2] not in FUNCTION_WORDS:  # not "Made in Germany"
        kept = kept[:-1]
    while len(kept) > 1 and kept[0] in editions:
        kept = kept[1:]
    if not _contents(kept) - headings:
        kept = words
    cuts = (place for place, word in enumerate(kept) if word in _PREPOSITIONS)
    cut = next((place for place in cuts if len(_contents(kept[:place])) >= 2), len(kept))
    return " ".join(kept[:cut]), cut == len(kept)


def _contents(words: Sequence[str]) -> set[str]:
    return {word for word in words if len(word) > 1 and word not in FUNCTION_WORDS}


@functools.cache
def _listed() -> tuple[frozenset[str], frozenset[str]]:
    """The words of editions.txt: editions and headings."""
    text = Path(__file__).with_name("editions.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    _, editions, headings = re.split(r"\[\w+\]", "\n".join(lines))
    return frozenset(editions.split()), frozenset(headings.split())
