"""Raw titles to titles of the space: one a show key, with the split it belongs to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tasks.tokenize.placeholders import is_placeholder
from tasks.tokenize.splits import SPLITS, Split, SplitSettings, split_titles
from tasks.tokenize.titles import parse_title


@dataclass(frozen=True)
class Shows:
    """Titles of the space, sorted by show key; every list has one entry a title.

    Attributes:
        raw_titles: The most aired raw form: what is tokenized.
        variants: raw_title, title_id.
    """

    displays: list[str]
    raw_titles: list[str]
    show_keys: list[str]
    families: list[str]
    languages: list[str | None]
    airings: list[int]
    first_airings: np.ndarray
    split: Split
    variants: pa.Table

    def table(self) -> pa.Table:
        """As titles.parquet has it."""
        return pa.table(
            {
                "title": pa.array(self.displays, pa.string()),
                "raw_title": pa.array(self.raw_titles, pa.string()),
                "show_key": pa.array(self.show_keys, pa.string()),
                "family": pa.array(self.families, pa.string()),
                "language": pa.array(self.languages, pa.string()),
                "split": pa.array([SPLITS[code] for code in self.split.codes], pa.string()),
                "airings": pa.array(self.airings, pa.int64()),
                "first_airing": pa.array(self.first_airings, pa.timestamp("us")),
            }
        )


def gather_shows(raw: pa.Table, settings: SplitSettings) -> Shows:
    """Groups raw titles by show key and splits the shows.

    Args:
        raw: As storage.catalogue.titles.raw_titles gives it.
        settings: Salt and shares of the held-out sets.
    """
    texts, airings, languages = raw["raw_title"].to_pylist(), raw["airings"].to_pylist(), raw["language"].to_pylist()
    first, last = raw["first_airing"].to_numpy(), raw["last_airing"].to_numpy()
    parsed = [parse_title(text) for text in texts]
    members: defaultdict[str, list[int]] = defaultdict(list)
    for row, title in enumerate(parsed):
        members[title.show_key].append(row)
    show_keys = sorted(members)
    most_aired = [max(members[key], key=lambda row: (airings[row], -len(texts[row]), texts[row])) for key in show_keys]
    first_airings = np.array([min(first[row] for row in members[key]) for key in show_keys], dtype=np.int64)
    families = [parsed[row].family for row in most_aired]
    placeholder = np.array([is_placeholder(key) for key in show_keys], dtype=bool)
    split = split_titles(show_keys, families, first_airings, int(last.max()) if len(last) else 0, placeholder, settings)
    variants = [(texts[row], number) for number, key in enumerate(show_keys) for row in members[key]]
    return Shows(
        displays=[parsed[row].display for row in most_aired],
        raw_titles=[texts[row] for row in most_aired],
        show_keys=show_keys,
        families=families,
        languages=[languages[row] for row in most_aired],
        airings=[sum(airings[row] for row in members[key]) for key in show_keys],
        first_airings=first_airings,
        split=split,
        variants=pa.table({"raw_title": pa.array([text for text, _ in variants], pa.string()), "title_id": pa.array([number for _, number in variants], pa.int32())}),
    )
