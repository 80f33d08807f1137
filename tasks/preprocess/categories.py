"""Cleans the category texts of guides, and selects those that become labels for training and scoring.

A category text is normalized (NFKC) and case-folded. If the mapping table contains the text, the table
replaces it. Otherwise, the text is split at , ; / and |, and the table is applied to each part. A value is
dropped if it has HTML, JSON, URLs or digits, if it is too short or too long, or if it is in
generic_categories.txt. A remaining value becomes a label if enough training titles have it, and if it is not
on too many titles of a feed.
"""

import csv
import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from storage.arrays import Ragged, offsets_of
from storage.errors import ExpectedError
from tasks.text.categories import fold, split_list

_CODE = re.compile(r"[<>{}\[\]=\"\\]|https?:|www\.|&\w+;")
MAX_LENGTH = 40  # maximum characters of a category
MIN_LENGTH = 3  # minimum characters of a category
MAPPED = "dropped by the mapping table"  # reason for dropping a category


class Labels(NamedTuple):
    """Labels (cleaned categories) of all titles. A label id is an index into ``names``."""

    names: list[str]  # sorted by descending number of training titles, then by name
    title_labels: Ragged  # int32 label ids of each title, ascending
    rare_names: list[str]  # categories that too few training titles have to become labels
    title_rare: Ragged  # int32 indices into ``rare_names`` of each title, ascending
    dropped: list[tuple[str, str, int]]  # (category, reason, number of titles), sorted by descending number
    spellings: dict[str, str]  # label -> most frequent spelling in the guide


class MappingError(ExpectedError, ValueError):
    """Raised if a mapping table of categories cannot be read; the message has the file, line and reason."""


@dataclass(frozen=True, kw_only=True)
class LabelSources:
    """Contents of the files that define labels; as a task input, they are part of the cache key.

    Attributes:
        mapping: Folded category -> canonical category, as ``read_mapping`` returns it.
        corrections: Show key -> labels that a user has chosen. Corrections of held-out titles are ignored:
            users correct titles that a model got wrong, so these corrections would bias the scores.
    """

    mapping: Mapping[str, str]
    corrections: Mapping[str, Sequence[str]] = field(default_factory=dict)


def read_mapping(path: str = "") -> dict[str, str]:
    """Reads a mapping table of categories, a CSV file with the columns ``raw`` and ``canonical``.

    Args:
        path: Path of the file; empty for the bundled table.

    Returns:
        Folded category -> canonical category; "" if the category is dropped.

    Raises:
        MappingError: The file cannot be read.
    """
    file = Path(path) if path else Path(__file__).with_name("category_mapping.csv")
    mapping: dict[str, str] = {}
    try:
        with open(file, encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            if (columns := reader.fieldnames) != ["raw", "canonical"]:
                raise MappingError(f"{file}: the first line is {columns}, expected raw,canonical")
            for row in reader:
                raw = fold(row["raw"] or "")
                if not raw or raw in mapping:
                    raise MappingError(
                        f"{file}, line {reader.line_num}: {raw!r} is "
                        f"{'mapped twice' if raw else 'no category'}; expected one line per raw category"
                    )
                mapping[raw] = fold(row["canonical"] or "")
    except OSError as error:
        raise MappingError(
            f"{file}: {error.strerror or error}; set preprocess.category_mapping to a CSV file with the "
            "columns raw,canonical"
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise MappingError(f"{file}: {error}; expected a CSV file in UTF-8") from error
    return mapping


def map_category(raw: str, mapping: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Cleans a category text, and applies a mapping table to it.

    If the table contains the complete text, the text is one category. Otherwise, the text is split, and the
    table is applied to each part.

    Returns:
        For each category in the text, the category and the reason for dropping it ("" if it is kept).
    """
    folded_text = fold(raw)
    if folded_text in mapping:
        return ((mapping[folded_text], ""),) if mapping[folded_text] else ((folded_text, MAPPED),)
    categories = []
    for category, reason in clean_category(raw):
        canonical = mapping.get(category, category)
        mapped_category = canonical, "" if category in mapping else reason
        categories.append(mapped_category if canonical else (category, MAPPED))
    return tuple(dict.fromkeys(categories))


def _reason_to_drop(category: str) -> str:
    if any(map(str.isdigit, category)):
        return "digits"
    if not MIN_LENGTH <= len(category) <= MAX_LENGTH:
        return "too long" if len(category) > MAX_LENGTH else "too short"
    return "generic" if category in generic_categories() else ""


@functools.lru_cache(maxsize=65536)
def clean_category(raw: str) -> tuple[tuple[str, str], ...]:
    """Splits a category text into categories. Returns each category and the reason for dropping it, or ""."""
    if _CODE.search(raw.casefold()):
        return ((raw[:MAX_LENGTH].casefold(), "code"),)
    return tuple((category[:MAX_LENGTH], _reason_to_drop(category)) for category in split_list(raw))


@functools.cache
def generic_categories() -> frozenset[str]:
    """Reads the case-folded categories that are too general to be labels (generic_categories.txt)."""
    lines = Path(__file__).with_name("generic_categories.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip().casefold() for line in lines if line.strip() and not line.startswith("#"))


def label_titles(
    categories: Iterable[tuple[str, str, np.ndarray]],
    titles_by_source: Mapping[str, int],
    is_training: np.ndarray,
    *,
    minimum_titles: int,
    largest_share: float,
    mapping: Mapping[str, str] | None = None,
    corrected: Mapping[int, Sequence[str]] | None = None,
) -> Labels:
    """Cleans the categories of all titles, and selects the categories that become labels.

    Args:
        categories: Source (feed), category text, and int32 ids of its titles with this category.
        titles_by_source: Number of titles of each source (feed).
        is_training: Whether a title is in the training set, bool (titles,).
        minimum_titles: Minimum number of training titles of a label.
        largest_share: Maximum share of a feed's titles with one category; a more frequent one is dropped.
        mapping: Result of ``read_mapping``; None: no category is replaced.
        corrected: Title id -> labels that a user has chosen, which replace categories; None: no corrections.
    """
    feed_titles: defaultdict[tuple[str, str], list[np.ndarray]] = defaultdict(list)
    dropped: Counter[tuple[str, str]] = Counter()
    spelling_counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    map_once = functools.cache(lambda raw: map_category(raw, mapping or {}))
    for source, raw, titles in categories:
        mapped_categories = map_once(raw)
        if corrected and not len(titles := titles[~np.isin(titles, [*corrected])]):
            continue
        if len(mapped_categories) == 1:  # the parts of a list have no spelling
            spelling_counts[mapped_categories[0][0]][raw.strip()] += len(titles)
        for category, reason in mapped_categories:
            if reason:
                dropped[category, reason] += len(titles)
            else:
                feed_titles[source, category].append(titles)
    title_arrays: defaultdict[str, list[np.ndarray]] = defaultdict(list)
    while feed_titles:
        (source, category), arrays = feed_titles.popitem()
        titles = np.unique(np.concatenate(arrays))
        if len(titles) > largest_share * titles_by_source[source]:
            dropped[category, "on too many titles of a feed"] += len(titles)
        else:
            title_arrays[category].append(titles)
    for title, labels in (corrected or {}).items():
        for label in labels:
            title_arrays[label].append(np.array([title], dtype=np.int32))
    titles_of = {category: np.unique(np.concatenate(arrays)) for category, arrays in title_arrays.items()}
    counts = {category: int(is_training[titles].sum()) for category, titles in titles_of.items()}
    names = [category for category, count in counts.items() if count >= minimum_titles]
    names.sort(key=lambda name: (-counts[name], name))
    rare_names = sorted({*counts} - {*names})
    dropped.update({(name, "on too few titles"): counts[name] for name in rare_names})
    title_labels, title_rare = (
        _ids_by_title([titles_of[name] for name in group], len(is_training)) for group in (names, rare_names)
    )
    spellings = {name: spelling_counts[name].most_common(1)[0][0] for name in names if spelling_counts[name]}
    dropped_rows = [(*key, n) for key, n in dropped.items()]
    dropped_rows.sort(key=lambda row: (-row[2], row[:2]))
    return Labels(names, title_labels, rare_names, title_rare, dropped_rows, spellings)


def _ids_by_title(titles_of_ids: Sequence[np.ndarray], title_count: int) -> Ragged:
    """Returns the category ids of each title, int32, ascending, from the titles of each category id."""
    titles = np.concatenate([np.zeros(0, dtype=np.int32), *titles_of_ids])
    ids = np.repeat(np.arange(len(titles_of_ids), dtype=np.int32), [len(array) for array in titles_of_ids])
    offsets = offsets_of(np.bincount(titles, minlength=title_count))
    return Ragged(offsets, ids[np.argsort(titles, kind="stable")])
