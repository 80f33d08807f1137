"""Patterns of sub-titles in the catalogue."""

import pyarrow as pa

from storage.catalogue.connection import Catalogue
from storage.catalogue.rows import PROGRAMMES
from storage.catalogue.sub_titles import PATTERNS, read_sub_titles, write_patterns
from tests.storage.catalogue.stored import HOUR, NOON, store


def _programmes(*sub_titles: str | None) -> pa.RecordBatch:
    rows = [
        {
            "channel": "b", "start": NOON + hour * HOUR, "stop": NOON + (hour + 1) * HOUR, "title": "Show",
            "sub_title": sub_title, "categories": [], "episode_numbers": [f"S1 E{hour + 1}"],
            "episode_systems": ["onscreen"],
        }
        for hour, sub_title in enumerate(sub_titles)
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(rows, schema=PROGRAMMES)


def test_the_view_episodes_has_the_pattern(tmp_path):
    with Catalogue.open(tmp_path) as catalogue:
        store(catalogue, "a", "1", _programmes("Part 1", None, "Nobody", "Part 1"))
        assert read_sub_titles(catalogue).to_pylist() == [
            {"sub_title": "Nobody", "programmes": 1},
            {"sub_title": "Part 1", "programmes": 2},
        ]
        for pattern in ("guests", "part"):  # the second replaces the first
            write_patterns(catalogue, pa.table([["Part 1"], [pattern], [None]], schema=PATTERNS))
        found = catalogue.connection.sql("SELECT episode, pattern FROM episodes ORDER BY episode").fetchall()
        assert found == [(1, "part"), (2, None), (3, None), (4, "part")]
