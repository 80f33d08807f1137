"""Patterns of sub-titles in the catalogue."""

import pyarrow as pa
import pyarrow.parquet as pq

from storage.catalogue.connection import Catalogue, temporary_database
from storage.catalogue.rows import PROGRAMMES
from storage.catalogue.snapshots import snapshot_digest, write_snapshot
from storage.catalogue.sub_titles import SUB_TITLE_PATTERNS, read_sub_titles, write_patterns
from tasks.tokenize.contexts import write_contexts
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
            write_patterns(catalogue, pa.table([["Part 1"], [pattern], [None]], schema=SUB_TITLE_PATTERNS))
        found = catalogue.connection.sql("SELECT episode, pattern FROM episodes ORDER BY episode").fetchall()
        assert found == [(1, "part"), (2, None), (3, None), (4, "part")]


def test_a_title_gets_the_pattern_of_most_of_its_airings_as_a_token(tmp_path):
    with Catalogue.open(tmp_path) as catalogue:
        store(catalogue, "a", "1", _programmes("Part 1", "Part 2", "Nobody"))
        before = snapshot_digest(catalogue)
        write_patterns(
            catalogue,
            pa.table(
                [["Nobody", "Part 1", "Part 2"], ["guests", "part", "part"], [0.9, None, None]],
                schema=SUB_TITLE_PATTERNS,
            ),
        )
        assert snapshot_digest(catalogue) != before
        assert write_snapshot(catalogue, tmp_path)["patterns"] == 3
    pq.write_table(
        pa.table({"raw_title": ["Show"], "title_id": pa.array([0], pa.int32())}), tmp_path / "v.parquet"
    )
    for kinds, wanted in ((("hour", "pattern"), {"manner:pattern:part"}), (("hour", "manner"), set())):
        with temporary_database(tmp_path) as connection:
            variants, path = tmp_path / "v.parquet", tmp_path / "c.parquet"
            write_contexts(connection, guide=tmp_path, variants=variants, kinds=kinds, path=path)
        found = set(pq.read_table(tmp_path / "c.parquet")["token"].to_pylist())
        assert {token for token in found if "pattern" in token} == wanted and "hour:12" in found
