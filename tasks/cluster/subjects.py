"""Everyday subjects of television, which clusters are named after: subjects.csv, a row a subject.

The columns are languages; ``general`` is the English name of a broader subject, empty for the broadest;
``also`` holds other words that feeds use as a category, parted by semicolons. Rows of your own are welcome.
"""

import csv
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from storage.shapes import Bool

_NO_LANGUAGE = {"general", "also"}
FILMS, FICTION = "Films", frozenset(["Films", "Drama", "Comedy"])  # broad subjects of invented stories


@dataclass(frozen=True)
class Subject:
    """A subject with its names."""

    key: str  # its English name
    general: str  # that of the broader subject, or empty
    names: dict[str, str]  # by language code
    categories: frozenset[str]  # folded: what feeds call it, in any language

    def name(self, language: str) -> str:
        """Its name in a language, in English where the table has no such column."""
        return self.names.get(language, self.key)


@functools.cache
def read_subjects() -> tuple[Subject, ...]:
    """The table; ValueError where a row names a broader subject that is not in it."""
    with Path(__file__).with_name("subjects.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    subjects = []
    for row in rows:
        names = {code: name for code, name in row.items() if code not in _NO_LANGUAGE and name}
        also = [word for word in row["also"].split(";") if word]
        categories = frozenset(name.casefold() for name in (*names.values(), *also))
        subjects.append(Subject(row["en"], row["general"], names, categories))
    unknown = {one.general for one in subjects} - {one.key for one in subjects} - {""}
    if unknown:
        raise ValueError(
            f"subjects.csv: {sorted(unknown)} in the column general are no subjects of the table"
        )
    return tuple(subjects)


def held_subjects(
    subjects: Sequence[Subject],
    labels: Sequence[Sequence[str]],
    words: Iterable[Sequence[str]],
    language: str,
) -> Bool[np.ndarray, "titles subjects"]:
    """Which subjects each title is about: by a category, or since its folded ``words`` hold the name.

    A title with a subject also has the broader one.
    """
    held = np.zeros((len(labels), len(subjects)), dtype=bool)
    by_category: dict[str, list[int]] = {}
    by_word: dict[str, int] = {}
    for place, subject in enumerate(subjects):
        for category in subject.categories:
            by_category.setdefault(category, []).append(place)
        by_word[subject.name(language).casefold()] = place
    places = {subject.key: place for place, subject in enumerate(subjects)}
    broader = np.array([places.get(subject.general, place) for place, subject in enumerate(subjects)])
    for row, (own, spoken) in enumerate(zip(labels, words, strict=True)):
        found = [place for label in own for place in by_category.get(label.casefold(), ())]
        found += [by_word[word] for word in spoken if word in by_word]
        held[row, found] = True
        held[row, broader[found]] = True
    return held
