"""Programmes that were replaced long ago can be deleted; snapshots of earlier days are then refused."""

from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from storage.catalogue.connection import CATALOGUE_FILE, Catalogue
from storage.catalogue.feeds import read_status
from storage.catalogue.retention import delete_replaced_programmes
from storage.catalogue.snapshots import SnapshotOptions, snapshot_digest, write_snapshot
from storage.home.workspace import HomeError, Workspace

from .stored import day
from .test_history import read

TABLES = ("feeds", "windows", "channel_history", "rejects", "migrations", "validators", "feed_attributes")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Home of four grabs: the second replaces x by y, the third y by z, and the fourth repeats the third."""
    made = Workspace(tmp_path / "home").home
    with Catalogue.open(made) as catalogue:
        for grabbed, schedule in ((1, "a1x a2k"), (3, "a1y a2k"), (20, "a1z a2k"), (21, "a1z a2k a3m")):
            read(catalogue, grabbed, schedule, description=f"told on {grabbed}")
    return made


def rows(home: Path, query: str) -> list:
    with duckdb.connect(str(home / CATALOGUE_FILE), read_only=True) as connection:
        return connection.execute(query).fetchall()


def content(home: Path) -> dict[str, list]:
    return {table: rows(home, f"FROM {table} ORDER BY ALL") for table in TABLES}


def current(home: Path, folder: Path) -> tuple[str, list]:
    folder.mkdir()
    with Catalogue.open(home) as catalogue:
        write_snapshot(catalogue, folder)
        return snapshot_digest(catalogue), pq.read_table(folder / "programmes.parquet").to_pylist()


def test_only_programmes_replaced_before_the_date_are_deleted(home: Path, tmp_path: Path) -> None:
    before, kept = current(home, tmp_path / "before"), content(home)
    schedule = rows(home, "FROM schedule ORDER BY ALL")
    assert {title for (title,) in rows(home, "SELECT title FROM programmes")} == {*"xyzkm"}
    assert delete_replaced_programmes(home, day(10), dry_run=True).count == 1
    assert delete_replaced_programmes(home, day(10)).count == 1
    assert {title for (title,) in rows(home, "SELECT title FROM programmes")} == {*"yzkm"}
    assert rows(home, "FROM details WHERE programme_id NOT IN (SELECT programme_id FROM programmes)") == []
    assert current(home, tmp_path / "after") == before and content(home) == kept
    assert rows(home, "FROM schedule ORDER BY ALL") == schedule
    assert delete_replaced_programmes(home, day(10)).count == 0
    assert read_status(home)["programmes"] == rows(home, "SELECT count(*) FROM programmes")[0][0]


def test_snapshots_before_a_deletion_are_refused_and_later_ones_work(home: Path, tmp_path: Path) -> None:
    delete_replaced_programmes(home, day(10))
    (tmp_path / "asked").mkdir()
    with Catalogue.open(home) as catalogue:
        with pytest.raises(HomeError, match=r"as of 2025-02-02 .* before 2025-02-10 00:00 UTC"):
            write_snapshot(catalogue, tmp_path / "asked", SnapshotOptions(as_of=day(2)))
        write_snapshot(catalogue, tmp_path / "asked", SnapshotOptions(as_of=day(11)))
    titles = pq.read_table(tmp_path / "asked" / "programmes.parquet")["title"].to_pylist()
    assert titles == ["y", "k"]


def test_a_grab_that_is_read_late_is_ordered_by_its_date(home: Path, tmp_path: Path) -> None:
    delete_replaced_programmes(home, day(10))
    with Catalogue.open(home) as catalogue:
        read(catalogue, 2, "a1w a2k")
    assert [row["title"] for row in current(home, tmp_path / "after")[1]] == ["z", "k", "m"]


def test_a_file_that_is_mostly_free_shrinks_and_keeps_everything(home: Path) -> None:
    with Catalogue.open(home) as catalogue:
        columns = "1000 + i AS programme_id, 2 AS feed_id, 3 AS replaced_by, hash(i)::VARCHAR AS title"
        made = "programmes, range(200_000) AS numbers(i) WHERE title = 'x'"
        copies = f"SELECT programmes.* REPLACE ({columns}) FROM {made}"
        catalogue.connection.execute(f"INSERT INTO programmes {copies}")
    views = {name for (name,) in rows(home, "SELECT view_name FROM duckdb_views() WHERE NOT internal")}
    macros = rows(home, "SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY ALL")
    constraints = rows(home, "SELECT table_name, constraint_text FROM duckdb_constraints() ORDER BY ALL")
    removed = delete_replaced_programmes(home, day(28))
    assert removed.count == 200_003 and removed.bytes > 1_000_000
    assert {
        name for (name,) in rows(home, "SELECT view_name FROM duckdb_views() WHERE NOT internal")
    } == views
    assert macros == rows(
        home, "SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY ALL"
    )
    assert constraints == rows(
        home, "SELECT table_name, constraint_text FROM duckdb_constraints() ORDER BY ALL"
    )
    assert sorted(file.name for file in home.glob("catalogue*")) == [CATALOGUE_FILE]
    with Catalogue.open(home) as catalogue:  # it can be read into as before
        read(catalogue, 28, "b1new", source="big")
