"""Dirty category texts to labels.

In this order: the mapping table (whole values: raw to canonical, or to nothing); text hygiene, NFKC and case folding; lists split on , ; / |; the mapping
table again, for the parts; dropped are values with HTML, JSON, URLs or
digits, longer than 40 characters or shorter than 3, and the editable list of generic names beside this file; a category
on more than 40 % of a feed's titles says nothing in that feed and counts there for nothing; what is left and stands on
20 training titles or more is a label. Every value that was dropped is counted with its reason.
"""

from __future__ import annotations

import csv
import functools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from storage.arrays import Ragged
from tasks.tokenize.titles import clean_text

_LISTS = re.compile(r"\s*[,;/|]\s*")
_CODE = re.compile(r"[<>{}\[\]=\"\\]|https?:|www\.|&\w+;")
LONGEST = 40
SHORTEST = 3
MAPPED = "dropped by the mapping table"


@dataclass(frozen=True)
class Labels:
    """Labels of titles.

    Attributes:
        names: Label names; falling number of training titles, then by name.
        of_title: int32 label ids of each title, rising.
        dropped: (category, reason) to the number of titles that had it, most first; of those on too few titles, the training titles.
    """

    names: list[str]
    of_title: Ragged
    dropped: list[tuple[str, str, int]]


@functools.cache
def generic_categories() -> frozenset[str]:
    """The editable list beside this file."""
    lines = Path(__file__).with_name("generic_categories.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip().casefold() for line in lines if line.strip() and not line.startswith("#"))


class MappingError(ValueError):
    """A mapping table that cannot be read: the message says where and what it should be."""


def read_mapping(path: str = "") -> dict[str, str]:
    """The mapping table of categories: folded raw value to canonical value, "" to drop it.

    Args:
        path: A CSV file with the columns ``raw`` and ``canonical``; "" is the one beside this file.

    Raises:
        MappingError: It is missing, has other columns, or maps one value twice.
    """
    file = Path(path) if path else Path(__file__).with_name("category_mapping.csv")
    try:
        with open(file, encoding="utf-8-sig", newline="") as opened:
            reader = csv.DictReader(opened)
            if (columns := reader.fieldnames) != ["raw", "canonical"]:
                raise MappingError(f"{file}: the first line is {columns}, expected raw,canonical")
            rows = [(reader.line_num, _fold(row["raw"] or ""), _fold(row["canonical"] or "")) for row in reader]
    except OSError as error:
        raise MappingError(f"{file}: {error.strerror or error}; preprocess.category_mapping names a CSV file with the columns raw,canonical") from error
    mapping: dict[str, str] = {}
    for line, raw, canonical in rows:
        if not raw or raw in mapping:
            raise MappingError(f"{file}, line {line}: {raw!r} is {'mapped twice' if raw else 'no category'}; each raw value has one line")
        mapping[raw] = canonical
    return mapping


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", clean_text(text)).casefold().strip(" .:-–\t")


NO_MAPPING: Mapping[str, str] = MappingProxyType({})


def map_category(raw: str, mapping: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """``clean_category`` after and before the mapping table: whole values first, then the parts of lists."""
    whole = _fold(raw)
    if whole in mapping:
        raw = mapping[whole]
        return ((raw, ""),) if raw else ((whole, MAPPED),)
    found = []
    for value, reason in clean_category(raw):
        canonical = mapping.get(value, value)
        found.append((canonical, "" if value in mapping else reason) if canonical else (value, MAPPED))
    return tuple(dict.fromkeys(found))


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
    categories: Iterable[tuple[str, str, np.ndarray]],
    titles_by_source: Mapping[str, int],
    training: np.ndarray,
    minimum_titles: int,
    largest_share: float,
    mapping: Mapping[str, str] = NO_MAPPING,
) -> Labels:
    """Cleans categories and keeps those that are labels. In memory are four bytes for each title of each category.

    Args:
        categories: Source, raw category and int32 titles; no title twice for one source and category.
        titles_by_source: Distinct titles of each feed.
        training: bool (titles,): only training titles are counted.
        minimum_titles: Training titles that a label needs.
        largest_share: A category on a larger share of a feed's titles is dropped in that feed.
        mapping: As ``read_mapping`` gives it.
    """
    by_source: defaultdict[tuple[str, str], list[np.ndarray]] = defaultdict(list)
    dropped: Counter[tuple[str, str]] = Counter()
    mapped: dict[str, tuple[tuple[str, str], ...]] = {}
    for source, raw, titles in categories:
        if raw not in mapped:
            mapped[raw] = map_category(raw, mapping)
        for value, reason in mapped[raw]:
            if reason:
                dropped[value, reason] += len(titles)
            else:
                by_source[source, value].append(titles)
    by_value: defaultdict[str, list[np.ndarray]] = defaultdict(list)
    while by_source:
        (source, value), parts = by_source.popitem()
        titles = np.unique(np.concatenate(parts))
        if len(titles) > largest_share * titles_by_source[source]:
            dropped[value, "on too many titles of a feed"] += len(titles)
        else:
            by_value[value].append(titles)
    titles_of = {value: parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts)) for value, parts in by_value.items()}
    counts = {value: int(training[titles].sum()) for value, titles in titles_of.items()}
    names = sorted((value for value, count in counts.items() if count >= minimum_titles), key=lambda value: (-counts[value], value))
    for value, count in counts.items():
        if count < minimum_titles:
            dropped[value, "on too few titles"] += count
    of_title = _by_title([titles_of[name] for name in names], len(training))
    return Labels(names, of_title, [(value, reason, count) for (value, reason), count in sorted(dropped.items(), key=lambda item: (-item[1], item[0]))])


def _by_title(titles_of: Sequence[np.ndarray], titles: int) -> Ragged:
    """The labels of each title, rising, from the titles of each label."""
    owners = np.concatenate([np.zeros(0, dtype=np.int32), *titles_of])
    numbers = np.repeat(np.arange(len(titles_of), dtype=np.int32), [len(own) for own in titles_of])
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=titles))])
    return Ragged(offsets, numbers[np.argsort(owners, kind="stable")])
