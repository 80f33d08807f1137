"""Reads subjects of television programmes, such as Cycling, from subjects.csv. They name clusters.

Each row is a subject. The columns ``en``, ``de`` and so on contain its name in a language. ``general`` is the
English name of the broader subject (Sport) and is empty for the broadest subjects. ``also`` contains names of
the same category in TV guides, separated by semicolons. Users may add rows.
"""

import csv
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from storage.shapes import Bool

_OTHER_COLUMNS = {"general", "also"}
FILMS, FICTION = "Films", frozenset(["Films", "Drama", "Comedy"])  # keys of the broad subjects of fiction


@dataclass(frozen=True)
class Subject:
    """Subject of television programmes, such as Cycling, with its names in several languages."""

    key: str  # English name
    general: str  # key of the broader subject; "" if there is none
    names: dict[str, str]  # name by language code
    categories: frozenset[str]  # case-folded names of categories in TV guides, in any language

    def name(self, language: str) -> str:
        """Returns the name in a language, or the English name if the table has none in this language."""
        return self.names.get(language, self.key)


@functools.cache
def read_subjects() -> tuple[Subject, ...]:
    """Reads subjects.csv.

    Raises:
        ValueError: A row refers to a broader subject that is not in the table.
    """
    with Path(__file__).with_name("subjects.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    subjects = []
    for row in rows:
        names = {code: name for code, name in row.items() if code not in _OTHER_COLUMNS and name}
        other_words = [word for word in row["also"].split(";") if word]
        categories = frozenset(name.casefold() for name in (*names.values(), *other_words))
        subjects.append(Subject(row["en"], row["general"], names, categories))
    keys = {subject.general for subject in subjects} - {subject.key for subject in subjects} - {""}
    if keys:
        raise ValueError(f"subjects.csv: {sorted(keys)} in column general are not in column en; add rows")
    return tuple(subjects)


@functools.cache
def _lookup(language: str) -> tuple[dict[str, list[int]], dict[str, int], np.ndarray]:
    """Builds lookup tables from subjects.csv.

    Returns:
        Indices of subjects by category in TV guides; index of a subject by its name in the language; and, for
        each subject, the index of its broader subject.
    """
    by_category: dict[str, list[int]] = {}
    for index, subject in enumerate(read_subjects()):
        for category in subject.categories:
            by_category.setdefault(category, []).append(index)
    by_word = {subject.name(language).casefold(): index for index, subject in enumerate(read_subjects())}
    index_by_key = {subject.key: index for index, subject in enumerate(read_subjects())}
    parents = [index_by_key.get(subject.general, index) for index, subject in enumerate(read_subjects())]
    return by_category, by_word, np.array(parents)


def find_title_subjects(
    labels: Sequence[Sequence[str]], words: Iterable[Sequence[str]], language: str
) -> Bool[np.ndarray, "titles subjects"]:
    """Returns a mask of the subjects that the categories or the words of each title name, bool.

    If the mask contains a subject, it also contains the broader subject.

    Args:
        labels: Categories of each title.
        words: Case-folded words of each title.
        language: Language of the titles, ISO 639-1.
    """
    by_category, by_word, broader_indices = _lookup(language)
    contains_subject = np.zeros((len(labels), len(broader_indices)), dtype=bool)
    for row, (title_labels, title_words) in enumerate(zip(labels, words, strict=True)):
        indices = [index for label in title_labels for index in by_category.get(label.casefold(), ())]
        indices += [by_word[word] for word in title_words if word in by_word]
        contains_subject[row, indices] = True
        contains_subject[row, broader_indices[indices]] = True
    return contains_subject
