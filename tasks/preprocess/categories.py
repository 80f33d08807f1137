"""Dirty category texts to labels.

In this order: text hygiene, NFKC and case folding; lists split on , ; / |; dropped are values with HTML, JSON, URLs or
digits, longer than 40 characters or shorter than 3, and the editable list of generic names beside this file; a category
on more than 40 % of a feed's titles says nothing in that feed and counts there for nothing; what is left and stands on
20 training titles or more is a label. Every value that was dropped is counted with its reason.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.tokenize.titles import clean_text

_LISTS = re.compile(r"\s*[,;/|]\s*")
_CODE = re.compile(r"[<>{}\[\]=\"\\]|https?:|www\.|&\w+;")
LONGEST = 40
SHORTEST = 3


@dataclass(frozen=True)
class Labels:
    """Labels of titles.

    Attributes:
        names: Label names; falling number of training titles, then by name.
        of_title: Label ids of each title, rising.
        dropped: (category, reason) to the number of titles that had it, most first.
    """

    names: list[str]
    of_title: list[list[int]]
    dropped: list[tuple[str, str, int]]


@functools.cache
def generic_categories() -> frozenset[str]:
    """The editable list beside this file."""
    lines = Path(__file__).with_name("generic_categories.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip().casefold() for line in lines if line.strip() and not line.startswith("#"))


@functools.lru_cache(maxsize=65536)
def clean_category(raw: str) -> tuple[tuple[str, str], ...]:
    """One raw category to (clean value, "") or (value, reason why it is dropped), one a list item."""
    if _CODE.search(raw.casefold()):
        return ((raw[:LONGEST].casefold(), "code"),)
    found = []
    for part in _LISTS.split(unicodedata.normalize("NFKC", clean_text(raw)).casefold()):  # mended before case hides the damage
        value = part.strip(" .:-–\t")
        if not value:
            continue
        if any(character.isdigit() for character in value):
            reason = "digits"
        elif len(value) > LONGEST:
            value, reason = value[:LONGEST], "too long"
        elif len(value) < SHORTEST:
            reason = "too short"
        elif value in generic_categories():
            reason = "generic"
        else:
            reason = ""
        found.append((value, reason))
    return tuple(found)


def label_titles(
    categories: Iterable[tuple[str, str, int]], titles_by_source: Mapping[str, int], training: list[bool], minimum_titles: int, largest_share: float
) -> Labels:
    """Cleans categories and keeps those that are labels.

    Args:
        categories: (source, raw category, title), distinct.
        titles_by_source: Distinct titles of each feed.
        training: Whether a title is a training title: only those are counted.
        minimum_titles: Training titles that a label needs.
        largest_share: A category on a larger share of a feed's titles is dropped in that feed.
    """
    by_source: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    dropped: Counter[tuple[str, str]] = Counter()
    for source, raw, title in categories:
        for value, reason in clean_category(raw):
            if reason:
                dropped[value, reason] += 1
            else:
                by_source[source, value].add(title)
    by_value: defaultdict[str, set[int]] = defaultdict(set)
    for (source, value), titles in by_source.items():
        if len(titles) > largest_share * titles_by_source[source]:
            dropped[value, "on too many titles of a feed"] += len(titles)
        else:
            by_value[value] |= titles
    counts = {value: sum(training[title] for title in titles) for value, titles in by_value.items()}
    names = sorted((value for value, count in counts.items() if count >= minimum_titles), key=lambda value: (-counts[value], value))
    for value, count in counts.items():
        if count < minimum_titles:
            dropped[value, "on too few titles"] += len(by_value[value])
    of_title: list[list[int]] = [[] for _ in training]
    for number, name in enumerate(names):
        for title in by_value[name]:
            of_title[title].append(number)
    return Labels(names, of_title, [(value, reason, count) for (value, reason), count in sorted(dropped.items(), key=lambda item: (-item[1], item[0]))])
