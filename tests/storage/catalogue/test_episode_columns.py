"""Columns season, episode and part: at ingest, after an upgrade, in snapshots and in `tonight`."""

import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from storage.catalogue.connection import CATALOGUE_FILE, Catalogue, read_migrations
from storage.catalogue.episode_columns import EPISODE_COLUMNS, EPISODE_MIGRATION, EpisodeReader
from storage.catalogue.evening import upcoming_programmes
from storage.catalogue.ledger import feed_writer
from storage.catalogue.snapshots import write_snapshot
from storage.episodes.numbers import read_episode
from tests.storage.catalogue.stored import NOON, READ_AT, migrate_home, programmes

ROWS = [
    ("Vera", "Sand", [("xmltv_ns", "0.4.0/2"), ("dd_progid", "EP01234567.0005")]),
    ("Vera", "Folge 9", [("themoviedb.org", "1981")]),
    ("Vera", None, [("season", "1"), ("episode", "14"), ("series", "SH09123312")]),
    ("Rote Rosen (888)", None, []),
    ("Formula E 2025", "Race 2", []),
    ("Vera", "Folge 9", [(None, "E5")]),
    ("Vera", "Folge 9", [("onscreen", "Staffel 2")]),
]
EXPECTED = [(1, 5, 1, 2), (None, 9, None, None), (1, 14, None, None), (None, 888, None, None), (None,) * 4]
EXPECTED += [(None, 5, None, None), (2, 9, None, None)]


def rows() -> pa.RecordBatch:
    made = programmes(*(("a", hour, title, "c") for hour, (title, _, _) in enumerate(ROWS)))
    changes = {
        "sub_title": pa.array([sub_title for _, sub_title, _ in ROWS], pa.string()),
        "episode_numbers": pa.array([[text for _, text in own] for *_, own in ROWS], pa.list_(pa.string())),
        "episode_systems": pa.array(
            [[system for system, _ in own] for *_, own in ROWS], pa.list_(pa.string())
        ),
    }
    for name, column in changes.items():
        made = made.set_column(made.schema.get_field_index(name), name, column)
    return made


def stored(catalogue: Catalogue) -> list[tuple]:
    query = "SELECT season, episode, part, parts FROM programmes ORDER BY start"
    return catalogue.connection.execute(query).fetchall()


def test_columns_equal_the_results_of_the_parser() -> None:
    made = list(zip(*(column.to_pylist() for column in EpisodeReader().columns(rows())), strict=True))
    assert made == [tuple(read_episode(numbers, title, sub_title)) for title, sub_title, numbers in ROWS]
    assert [(season, episode, part, parts) for season, _, episode, _, part, parts in made] == EXPECTED
    assert [len(column) for column in EpisodeReader().columns(rows().slice(0, 0))] == [0] * len(
        EPISODE_COLUMNS
    )
    assert EpisodeReader().columns(rows().slice(2))[2].to_pylist() == [
        episode for _, episode, *_ in EXPECTED[2:]
    ]


def test_a_home_of_an_older_version_gets_the_columns(tmp_path: Path) -> None:
    """And one that never kept the systems of numbers."""
    before = [step.name for step in read_migrations()].index(EPISODE_MIGRATION)
    migrate_home(tmp_path, before)
    with duckdb.connect(str(tmp_path / CATALOGUE_FILE)) as connection:
        arriving = rows()  # noqa: F841  (found by its name)
        columns = "programme_id, 1, NULL, 's', arriving.*"
        connection.execute(f"INSERT INTO programmes SELECT row_number() OVER () AS {columns} FROM arriving")
    with Catalogue.open(tmp_path) as catalogue:
        assert stored(catalogue) == EXPECTED
        again = "UPDATE programmes SET episode_systems = NULL, season = NULL, episode = NULL"
        catalogue.connection.execute(again)
        catalogue.connection.execute("DELETE FROM migrations WHERE version > ?", [before])
        for name in EPISODE_COLUMNS:
            catalogue.connection.execute(f"ALTER TABLE programmes DROP COLUMN {name}")
    with Catalogue.open(tmp_path) as catalogue:
        assert stored(catalogue)[0] == (1, 5, 1, 2) and stored(catalogue)[2] == (None, 1, None, None)


def test_ingest_snapshot_and_evening_have_the_columns(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        with feed_writer(catalogue, source="s", content_digest="1", size=10, read_at=READ_AT) as draft:
            draft.add_programmes(rows())
        assert stored(catalogue) == EXPECTED
        with feed_writer(catalogue, source="s", content_digest="2", size=10, read_at=READ_AT) as draft:
            draft.add_programmes(rows())  # staged, since the source is known: all are repeated
        assert stored(catalogue) == EXPECTED
        found = catalogue.connection.execute(
            "SELECT system, season, episode FROM episodes JOIN schedule USING (programme_id) WHERE start = ?",
            [NOON],
        ).fetchall()
        assert sorted(found) == [("dd_progid", 1, 5), ("xmltv_ns", 1, 5)]
        write_snapshot(catalogue, tmp_path)
    table = pq.read_table(tmp_path / "programmes.parquet")
    assert table["episode"].to_pylist() == [episode for _, episode, *_ in EXPECTED]
    assert table["episode_systems"].to_pylist()[0] == ["xmltv_ns", "dd_progid"]
    evening = upcoming_programmes(tmp_path, NOON, NOON + datetime.timedelta(days=1))
    assert evening["episode"].to_pylist() == [episode for _, episode, *_ in EXPECTED]
    pq.write_table(
        table.drop_columns(["episode_systems", *EPISODE_COLUMNS]), tmp_path / "programmes.parquet"
    )  # as before
    assert (
        upcoming_programmes(tmp_path, NOON, NOON + datetime.timedelta(days=1))["episode"].to_pylist()[3]
        == 888
    )
