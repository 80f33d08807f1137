"""Reads subjects.csv: subjects of television programmes, such as Cycling, from which clusters are named.

Each row is a subject. The columns ``en``, ``de`` and so on contain the name of the subject in a language. The
column ``general`` contains the English name of the broader subject (Sport); it is empty for the broadest
subjects. The column ``also`` contains the categories of TV guides that mean this subject, separated by
semicolons. Users may add rows.
"""

import csv
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from storage.shapes import Bool, Int

_OTHER_COLUMNS = {"general", "also"}
FILMS, FICTION = "Films", frozenset(["Films", "Drama", "Comedy"])  # keys of the broad subjects of fiction


@dataclass(frozen=True)
class Subject:
    """Subject of television programmes, such as Cycling, with its names in several languages."""

    key: str  # English name
    broader_key: str  # key of the broader subject; "" if there is none
    names: dict[str, str]  # name by language code
    categories: frozenset[str]  # case-folded names of categories in TV guides, in any language

    def name(self, language: str) -> str:
        """Returns the name of the subject in a language, or the English name if that name is missing."""
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
        synonyms = [name for name in row["also"].split(";") if name]
        categories = frozenset(name.casefold() for name in (*names.values(), *synonyms))
        subjects.append(Subject(row["en"], row["general"], names, categories))
    keys = {subject.key for subject in subjects}
    if missing_keys := {subject.broader_key for subject in subjects} - keys - {""}:
        raise ValueError(
            f"subjects.csv: {sorted(missing_keys)} in column general are not in column en; add rows"
        )
    return tuple(subjects)


@functools.cache
def broader_indices() -> Int[np.ndarray, " subjects"]:
    """Returns, for each subject, the index of its broader subject, or its own index if it has none."""
    index_by_key = {subject.key: index for index, subject in enumerate(read_subjects())}
    return np.array(
        [index_by_key.get(subject.broader_key, index) for index, subject in enumerate(read_subjects())]
    )


@functools.cache
def _index_by_text(language: str) -> tuple[dict[str, list[int]], dict[str, int]]:
    """Builds lookup tables from subjects.csv.

    Returns:
        The indices of subjects by category of TV guides, and the index of a subject by its name in the
        language. Categories and names are case-folded.
    """
    by_category: dict[str, list[int]] = {}
    for index, subject in enumerate(read_subjects()):
        for category in subject.categories:
            by_category.setdefault(category, []).append(index)
    by_name = {subject.name(language).casefold(): index for index, subject in enumerate(read_subjects())}
    return by_category, by_name


def find_title_subjects(
    labels: Sequence[Sequence[str]], words: Iterable[Sequence[str]], language: str
) -> Bool[np.ndarray, "titles subjects"]:
    """Returns a mask of the subjects that the categories or the words of each title name.

    A title that has a subject also has the broader subject.

    Args:
        labels: Categories of each title.
        words: Case-folded words of each title.
        language: Language of the titles, ISO 639-1.
    """
    by_category, by_name = _index_by_text(language)
    has_subject = np.zeros((len(labels), len(read_subjects())), dtype=bool)
    for row, (title_labels, title_words) in enumerate(zip(labels, words, strict=True)):
        indices = [index for label in title_labels for index in by_category.get(label.casefold(), ())]
        indices += [by_name[word] for word in title_words if word in by_name]
        has_subject[row, indices] = True
        has_subject[row, broader_indices()[indices]] = True
    return has_subject
