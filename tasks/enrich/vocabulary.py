"""Defines vocabularies of category names: the categories of guides, or a table that maps them to other names.

A table is a CSV file in UTF-8 with the column ``raw`` (categories as they occur in guides) and one column of
names per level, the broadest level first. An empty cell means that the category has no name at this level.
Case is ignored. If a raw category has several rows, the first row is used. ``etsi.csv`` has the content
descriptors of ETSI EN 300 468 (table 29) in the spelling of Tvheadend and Kodi.
"""

import csv
import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.enrich.errors import EnrichError
from tasks.preprocess.categories import clean_category, fold, read_mapping

GUIDE_VOCABULARY, ETSI = "own", "etsi"  # names of the vocabularies that need no file of the user
ETSI_TABLE = Path(__file__).with_name("etsi.csv")
Names = tuple[str, ...]
_read_synonyms = functools.cache(read_mapping)  # bundled mapping of categories to equivalent categories


@dataclass(frozen=True)
class GuideVocabulary:
    """Vocabulary of the categories that guides contain, in their most frequent spelling."""

    spellings: Mapping[str, str]  # most frequent spelling of each label
    levels: int = 1

    def of_label(self, label: str) -> Names:
        """Returns the name of a label at the only level of this vocabulary: its most frequent spelling."""
        return (self.spellings.get(label, label),)

    def of_categories(self, categories: Sequence[str]) -> Names:
        """Returns the names for a programme with these categories: the categories without duplicates."""
        return tuple(dict.fromkeys(categories))

    def is_below(self, name_above: str, name: str) -> bool:
        """Returns False, because there is only one level."""
        return False


@dataclass(frozen=True, eq=False)
class Table:
    """Vocabulary that maps the categories of guides to the names in a table."""

    names_by_category: Mapping[str, Names]  # one name per level, by case-folded category

    @property
    def levels(self) -> int:
        """Number of levels: the number of columns of names."""
        return len(next(iter(self.names_by_category.values())))

    def of_label(self, label: str) -> Names:
        """Returns the name of a label at each level of the vocabulary; "" at a level where it has no name."""
        return self.names_by_category.get(label, ("",) * self.levels)

    def of_categories(self, categories: Sequence[str]) -> Names:
        """Returns the distinct names for a programme with these categories, broadest level first."""
        return distinct_names(names for category in categories for names in self.find_names(category))

    def is_below(self, name_above: str, name: str) -> bool:
        """Returns whether a row of the table has ``name`` one level below ``name_above``."""
        return (name_above, name) in self._level_pairs

    @functools.cached_property
    def _level_pairs(self) -> set[tuple[str, str]]:
        """Pairs (name, name one level below) of all rows."""
        return {pair for names in self.names_by_category.values() for pair in itertools.pairwise(names)}

    @functools.lru_cache(maxsize=65_536)  # noqa: B019  (one table per process)
    def find_names(self, category: str) -> tuple[Names, ...]:
        """Returns the names of a category in the table.

        These are the names of the complete category or, for a category such as "Drama, Crime" that the table
        lacks, the names of each of its items.
        """
        if (key := fold(category)) in self.names_by_category:
            return (self.names_by_category[key],)
        synonyms, items = _read_synonyms(), [item for item, _ in clean_category(category)]
        keys = (item if item in self.names_by_category else synonyms.get(item, item) for item in items)
        return tuple(self.names_by_category[key] for key in keys if key in self.names_by_category)


Vocabulary = GuideVocabulary | Table


def distinct_names(names: Iterable[Names]) -> Names:
    """Returns the distinct names of several categories, which have a name per level, broadest level first."""
    return tuple(dict.fromkeys(filter(None, itertools.chain.from_iterable(zip(*names)))))


def read_vocabulary(name: str, spellings: Mapping[str, str]) -> Vocabulary:
    """Creates a vocabulary.

    Args:
        name: ``own`` (the categories of guides), ``etsi`` (the bundled table), or the path of a table.
        spellings: Most frequent spelling of each label of the model.

    Raises:
        EnrichError: The table cannot be read or is malformed.
    """
    if name == GUIDE_VOCABULARY:
        return GuideVocabulary(spellings)
    return Table(read_table(ETSI_TABLE if name == ETSI else Path(name)))


def read_table(file: Path) -> dict[str, Names]:
    """Reads a table. Returns the names of each category (one per level), by case-folded category.

    Raises:
        EnrichError: The table cannot be read or is malformed.
    """
    rows: dict[str, Names] = {}
    try:
        with open(file, encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(handle)
            header = next(reader, [])
            if len(header) < 2 or header[0] != "raw":
                raise EnrichError(
                    f"{file}: the first line is {','.join(header)!r}; expected the column raw and a column "
                    "of names for each level"
                )
            for row in reader:
                if len(row) != len(header):
                    raise EnrichError(
                        f"{file}, line {reader.line_num}: {len(row)} cells, expected {len(header)} "
                        f"({', '.join(header)})"
                    )
                names = tuple(cell.strip() for cell in row[1:])
                rows.setdefault(fold(row[0]), names)
    except OSError as error:
        raise EnrichError(
            f"{file}: {error.strerror or error}; expected {GUIDE_VOCABULARY}, {ETSI}, or a CSV file "
            "with the column raw and a column of names for each level"
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise EnrichError(f"{file}: {error}; expected a CSV file in UTF-8") from error
    if not any(map(any, rows.values())):
        raise EnrichError(f"{file}: no row has a name; expected a category and at least one name in a row")
    return rows
