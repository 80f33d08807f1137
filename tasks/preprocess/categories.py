"""Dirty category texts to labels.

In this order: the mapping table for whole values; NFKC and case folding; lists split on , ; / |; the mapping
table for the parts. Dropped are values with HTML, JSON, URLs or digits, of bad length, and the names in
generic_categories.txt. What is left on enough training titles, and not on too many of a feed, is a label.
"""

import csv
import functools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from storage.arrays import Ragged, offsets_of
from storage.errors import ExpectedError
from tasks.text.titles import clean_text

_LISTS = re.compile(r"\s*[,;/|]\s*")
_CODE = re.compile(r"[<>{}\[\]=\"\\]|https?:|www\.|&\w+;")
_ENDS = " .:-–\t"
LONGEST = 40
SHORTEST = 3
MAPPED = "dropped by the mapping table"


class Labels(NamedTuple):
    """Labels of titles."""

    names: list[str]  # falling number of training titles, then by name
    of_title: Ragged  # int32 label ids of each title, rising
    dropped: list[tuple[str, str, int]]  # category, reason, titles; most first
    spellings: dict[str, str]  # label to the category that most titles have it by, as written


class MappingError(ExpectedError, ValueError):
    """A mapping table cannot be read; the message says where and what is expected."""


@dataclass(frozen=True, kw_only=True)
class LabelSources:
    """What turns categories into labels: the contents of files, so that an edited file changes cache keys.

    Attributes:
        mapping: Folded category to canonical category, as ``read_mapping`` returns it.
        corrections: Show key to the labels that a user gave it. They apply to training titles only: users
            correct titles that a model got wrong, so corrected held-out titles would bias the scores.
    """

    mapping: Mapping[str, str]
    corrections: Mapping[str, Sequence[str]] = field(default_factory=dict)


def read_mapping(path: str = "") -> dict[str, str]:
    """A CSV file with the columns raw and canonical as folded raw value to canonical value ("" drops it)."""
    file = Path(path) if path else Path(__file__).with_name("category_mapping.csv")
    mapping: dict[str, str] = {}
    try:
        with open(file, encoding="utf-8-sig", newline="") as opened:
            reader = csv.DictReader(opened)
            if (columns := reader.fieldnames) != ["raw", "canonical"]:
                raise MappingError(f"{file}: the first line is {columns}, expected raw,canonical")
            for row in reader:
                raw = fold(row["raw"] or "")
                if not raw or raw in mapping:
                    problem = f"{raw!r} is {'mapped twice' if raw else 'no category'}"
                    line = f"{file}, line {reader.line_num}"
                    raise MappingError(f"{line}: {problem}; each raw value has one line")
                mapping[raw] = fold(row["canonical"] or "")
    except OSError as error:
        advice = "preprocess.category_mapping names a CSV file with the columns raw,canonical"
        raise MappingError(f"{file}: {error.strerror or error}; {advice}") from error
    return mapping


def map_category(raw: str, mapping: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """``clean_category`` after and before the mapping table: whole values first, then the parts of lists."""
    whole = fold(raw)
    if whole in mapping:
        return ((mapping[whole], ""),) if mapping[whole] else ((whole, MAPPED),)
    found = []
    for value, reason in clean_category(raw):
        canonical = mapping.get(value, value)
        found.append((canonical, "" if value in mapping else reason) if canonical else (value, MAPPED))
    return tuple(dict.fromkeys(found))


def _reason_to_drop(value: str) -> str:
    if any(map(str.isdigit, value)):
        return "digits"
    if not SHORTEST <= len(value) <= LONGEST:
        return "too long" if len(value) > LONGEST else "too short"
    return "generic" if value in generic_categories() else ""


@functools.lru_cache(maxsize=65536)
def clean_category(raw: str) -> tuple[tuple[str, str], ...]:
    """One raw category to (clean value, "") or (value, reason why it is dropped), one a list item."""
    if _CODE.search(raw.casefold()):
        return ((raw[:LONGEST].casefold(), "code"),)
    # repaired before the list is split and before case folding hides the damage
    values = (part.strip(_ENDS) for part in _LISTS.split(fold(raw)))
    return tuple((value[:LONGEST], _reason_to_drop(value)) for value in values if value)


@functools.cache
def generic_categories() -> frozenset[str]:
    """The editable list beside this file."""
    lines = Path(__file__).with_name("generic_categories.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip().casefold() for line in lines if line.strip() and not line.startswith("#"))


def fold(text: str) -> str:
    """A category repaired, normalised and case-folded, without the marks around it."""
    return unicodedata.normalize("NFKC", clean_text(text)).casefold().strip(_ENDS)


def label_titles(
    categories: Iterable[tuple[str, str, np.ndarray]],
    titles_by_source: Mapping[str, int],
    training: np.ndarray,
    minimum_titles: int,
    largest_share: float,
    mapping: Mapping[str, str] | None = None,
    corrected: Mapping[int, Sequence[str]] | None = None,
) -> Labels:
    """Cleans categories and keeps those that are labels; four bytes in memory a title of a category.

    ``categories`` are source, raw category and int32 titles, no title twice for one source and category. One
    on more than ``largest_share`` of a feed's titles is dropped in that feed; training titles are counted.
    ``corrected`` titles have the labels that a person gave them, whatever feeds say of them.
    """
    by_source: defaultdict[tuple[str, str], list[np.ndarray]] = defaultdict(list)
    dropped: Counter[tuple[str, str]] = Counter()
    spelled: defaultdict[str, Counter[str]] = defaultdict(Counter)
    map_once = functools.cache(lambda raw: map_category(raw, mapping or {}))
    for source, raw, titles in categories:
        values = map_once(raw)
        if corrected and not len(titles := titles[~np.isin(titles, [*corrected])]):
            continue
        if len(values) == 1:  # of a list no part is written as a category of its own
            spelled[values[0][0]][raw.strip()] += len(titles)
        for value, reason in values:
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
    for title, own in (corrected or {}).items():
        for value in own:
            by_value[value].append(np.array([title], dtype=np.int32))
    titles_of = {value: np.unique(np.concatenate(parts)) for value, parts in by_value.items()}
    counts = {value: int(training[titles].sum()) for value, titles in titles_of.items()}
    names = sorted(value for value, count in counts.items() if count >= minimum_titles)
    names.sort(key=lambda name: -counts[name])
    few = {(value, "on too few titles"): count for value, count in counts.items() if count < minimum_titles}
    most_first = sorted({**dropped, **few}.items(), key=lambda item: (-item[1], item[0]))
    owners = np.concatenate([np.zeros(0, dtype=np.int32), *(titles_of[name] for name in names)])
    numbers = np.repeat(np.arange(len(names), dtype=np.int32), [len(titles_of[name]) for name in names])
    offsets = offsets_of(np.bincount(owners, minlength=len(training)))
    of_title = Ragged(offsets, numbers[np.argsort(owners, kind="stable")])
    spellings = {name: spelled[name].most_common(1)[0][0] for name in names if name in spelled}
    most_first = [(value, reason, count) for (value, reason), count in most_first]
    return Labels(names, of_title, most_first, spellings)
