"""Defines vocabularies of category names: the categories of guides, or a table that maps them to other names.

A table is a CSV file in UTF-8 with the column ``raw`` (a category as it occurs in guides) and one column of
names per level, the broadest level first. An empty cell means no name. Case is ignored. If a raw value has
several rows, the first row is used. ``etsi.csv`` has the content descriptors of ETSI EN 300 468 (table 29) in
the spelling of Tvheadend and Kodi.
"""

import csv
import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.enrich.errors import EnrichError
from tasks.preprocess.categories import clean_category, fold, read_mapping

GUIDE_VOCABULARY, ETSI = "own", "etsi"
ETSI_TABLE = Path(__file__).with_name("etsi.csv")
Names = tuple[str, ...]


@dataclass(frozen=True)
class GuideVocabulary:
    """Vocabulary of the categories that guides contain, in their most frequent spelling."""

    spellings: Mapping[str, str]  # most frequent spelling of each label
    levels: int = 1

    def of_label(self, label: str) -> Names:
        """Returns the name of a label at each level; empty text where it has none."""
        return (self.spellings.get(label, label),)

    def of_categories(self, categories: Sequence[str]) -> Names:
        """Returns the names for a programme with these categories, in the order of levels."""
        return tuple(dict.fromkeys(categories))

    def is_below(self, above: str, name: str) -> bool:
        """Returns False, because there is only one level."""
        return False


@dataclass(frozen=True, eq=False)
class Table:
    """Vocabulary that maps the categories of guides to the names in a table."""

    rows: Mapping[str, Names]  # maps a folded raw category to its name at each level

    @property
    def levels(self) -> int:
        """Number of levels, which is the number of columns of names."""
        return len(next(iter(self.rows.values())))

    def of_label(self, label: str) -> Names:
        """Returns the name of a label at each level; empty text where it has none."""
        return self.rows.get(label, ("",) * self.levels)

    def of_categories(self, categories: Sequence[str]) -> Names:
        """Returns the names for a programme with these categories, in the order of levels."""
        matches = [names for category in categories for names in self.find(category)]
        by_level = (names[level] for level in range(self.levels) for names in matches)
        return tuple(dict.fromkeys(filter(None, by_level)))

    def is_below(self, above: str, name: str) -> bool:
        """Returns whether a row of the table has ``name`` one level below ``above``."""
        return (above, name) in self._pairs

    @functools.cached_property
    def _pairs(self) -> set[tuple[str, str]]:
        """Pairs of a name and a name one level below it in the same row."""
        return {pair for names in self.rows.values() for pair in itertools.pairwise(names)}

    @functools.lru_cache(maxsize=65_536)  # noqa: B019  (one table per process)
    def find(self, category: str) -> tuple[Names, ...]:
        """Returns the row of a category, or else the rows of the items of a list such as "Drama, Crime"."""
        if (key := fold(category)) in self.rows:
            return (self.rows[key],)
        synonyms, parts = _read_synonyms(), [value for value, _ in clean_category(category)]
        values = (value if value in self.rows else synonyms.get(value, value) for value in parts)
        return tuple(self.rows[value] for value in values if value in self.rows)


Vocabulary = GuideVocabulary | Table


@functools.cache
def _read_synonyms() -> dict[str, str]:
    """Returns the bundled mapping of categories to equivalent categories."""
    return read_mapping()


def read_vocabulary(name: str, spellings: Mapping[str, str]) -> Vocabulary:
    """Returns the vocabulary with a name, or reads a table.

    Args:
        name: ``own`` (categories of guides), ``etsi``, or the path of a table.
        spellings: Most frequent spelling of each label of the model.

    Raises:
        EnrichError: The table cannot be read or is malformed.
    """
    if name == GUIDE_VOCABULARY:
        return GuideVocabulary(spellings)
    return Table(read_table(ETSI_TABLE if name == ETSI else Path(name)))


def read_table(file: Path) -> dict[str, Names]:
    """Reads a table. Returns the names at each level by raw category in lower case."""
    rows: dict[str, Names] = {}
    try:
        with open(file, encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(handle)
            header = next(reader, [])
            if len(header) < 2 or header[0] != "raw":
                raise EnrichError(
                    f"{file}: the first line is {','.join(header)!r}; expected raw and a column of "
                    "names for each level"
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
            "with the column raw and columns of names"
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise EnrichError(f"{file}: {error}; expected CSV in UTF-8") from error
    if not any(map(any, rows.values())):
        raise EnrichError(f"{file}: no row has a name; expected a raw category and a name in each row")
    return rows
