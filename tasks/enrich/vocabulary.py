"""Which names are written: a guide's own categories, or those of a table.

A table is a CSV file, UTF-8: ``raw``, a category as guides have it, then one column a level, from the
broadest to the finest; an empty cell is no name. ``etsi.csv`` has the content descriptors of ETSI EN 300 468
(table 29), spelled as Tvheadend and Kodi spell them. Case does not matter; the first line of a raw value
counts.
"""

import csv
import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.enrich.errors import EnrichError
from tasks.preprocess.categories import clean_category, fold, read_mapping

OWN, ETSI = "own", "etsi"
ETSI_TABLE = Path(__file__).with_name("etsi.csv")
Names = tuple[str, ...]


@dataclass(frozen=True)
class Own:
    """The guide's own categories: labels as guides spell them."""

    spellings: Mapping[str, str]
    levels: int = 1

    def of_label(self, label: str) -> Names:
        """The name at each level, empty where there is none."""
        return (self.spellings.get(label, label),)

    def of_categories(self, categories: Sequence[str]) -> Names:
        """What to write for a programme of a show with these categories, in the order of levels."""
        return tuple(dict.fromkeys(categories))

    def fits(self, above: str, name: str) -> bool:
        """There is one level."""
        return False


@dataclass(frozen=True, eq=False)
class Table:
    """Names of a table."""

    rows: Mapping[str, Names]

    @property
    def levels(self) -> int:
        """Columns of names."""
        return len(next(iter(self.rows.values())))

    def of_label(self, label: str) -> Names:
        """The name at each level, empty where there is none."""
        return self.rows.get(label, ("",) * self.levels)

    def of_categories(self, categories: Sequence[str]) -> Names:
        """What to write for a programme of a show with these categories, in the order of levels."""
        found = [names for category in categories for names in self._find(category)]
        by_level = (names[level] for level in range(self.levels) for names in found)
        return tuple(dict.fromkeys(filter(None, by_level)))

    def fits(self, above: str, name: str) -> bool:
        """Whether a name stands right behind another in any line."""
        return (above, name) in self._pairs

    @functools.cached_property
    def _pairs(self) -> set[tuple[str, str]]:
        return {pair for names in self.rows.values() for pair in itertools.pairwise(names)}

    @functools.lru_cache(maxsize=65_536)  # noqa: B019  (a command has one table)
    def _find(self, category: str) -> tuple[Names, ...]:
        """Names of a category as written, else of the items of a list."""
        if (whole := fold(category)) in self.rows:
            return (self.rows[whole],)
        synonyms, parts = _synonyms(), [value for value, _ in clean_category(category)]
        values = (value if value in self.rows else synonyms.get(value, value) for value in parts)
        return tuple(self.rows[value] for value in values if value in self.rows)


Vocabulary = Own | Table


@functools.cache
def _synonyms() -> dict[str, str]:
    return read_mapping()


def read_vocabulary(name: str, spellings: Mapping[str, str]) -> Vocabulary:
    """``own``, ``etsi`` or the path of a table; ``spellings`` are of the model's labels.

    Raises:
        EnrichError: The table cannot be read; says where and what is expected.
    """
    return Own(spellings) if name == OWN else Table(read_table(ETSI_TABLE if name == ETSI else Path(name)))


def read_table(file: Path) -> dict[str, Names]:
    """Folded raw category to its names."""
    rows: dict[str, Names] = {}
    try:
        with open(file, encoding="utf-8-sig", newline="") as opened:
            reader = csv.reader(opened)
            head = next(reader, [])
            if len(head) < 2 or head[0] != "raw":
                problem = f"the first line is {','.join(head)!r}"
                raise EnrichError(f"{file}: {problem}; expected raw and a column of names for each level")
            for row in reader:
                if len(row) != len(head):
                    problem = f"{len(row)} cells, expected {len(head)}"
                    raise EnrichError(f"{file}, line {reader.line_num}: {problem} ({', '.join(head)})")
                names = tuple(cell.strip() for cell in row[1:])
                rows.setdefault(fold(row[0]), names)
    except OSError as error:
        expected = f"{OWN}, {ETSI}, or a CSV file with the column raw and one or more of names"
        raise EnrichError(f"{file}: {error.strerror or error}; expected {expected}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise EnrichError(f"{file}: {error}; expected CSV in UTF-8") from error
    if not any(map(any, rows.values())):
        raise EnrichError(f"{file}: no line has a name; expected a raw category and a name in each")
    return rows
