"""Migrations and views of the catalogue, also after a kill."""

import gzip
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from storage.catalogue import connection
from storage.catalogue.connection import CATALOGUE_FILE, Catalogue, Migration, read_migrations
from storage.home.workspace import HomeError
from storage.stages import ROOT
from tests.storage.catalogue.stored import migrate_home

VERSION = len(read_migrations()) + 1
NEXT = Migration("next", "ALTER TABLE feeds ADD COLUMN etag VARCHAR; CREATE VIEW v AS FROM feeds;")
BROKEN = Migration("broken", "CREATE TABLE half (a INTEGER); SELECT no_such_column FROM feeds;")
FEED = (
    "INSERT INTO feeds (feed_id, source, content_digest, bytes, read_at, grabbed_at, seen, stored, "
    "duplicates, rejected) VALUES (1, 'a', 'd', 1, now()::TIMESTAMP, now()::TIMESTAMP, 0, 0, 0, 0)"
)


@pytest.fixture
def with_migration(monkeypatch: pytest.MonkeyPatch):
    """Adds a migration to the list."""
    return lambda step: monkeypatch.setattr(connection, "read_migrations", lambda: [*read_migrations(), step])


def query(home: Path, sql: str) -> list[tuple]:
    with duckdb.connect(str(home / CATALOGUE_FILE), read_only=True) as opened:
        return opened.execute(sql).fetchall()


def applied(home: Path) -> list[tuple]:
    return query(home, "SELECT version, name FROM migrations ORDER BY version")


def test_every_older_version_is_migrated_to_the_newest(tmp_path: Path) -> None:
    for count in range(VERSION):
        home = tmp_path / str(count)
        home.mkdir()
        if count:
            migrate_home(home, count)
        with Catalogue.open(home) as catalogue:
            assert catalogue.schema_version == VERSION - 1
        assert applied(home) == [(version, step.name) for version, step in enumerate(read_migrations(), 1)]


def test_a_migration_keeps_rows_and_is_applied_once(tmp_path: Path, with_migration) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        catalogue.connection.execute(FEED)
    with_migration(NEXT)
    for _ in range(2):
        with Catalogue.open(tmp_path) as catalogue:
            assert catalogue.connection.execute("SELECT source, etag FROM v").fetchall() == [("a", None)]
    assert applied(tmp_path)[-1] == (VERSION, "next")


def test_a_newer_home_is_refused_and_not_changed(tmp_path: Path, with_migration, monkeypatch) -> None:
    with_migration(NEXT)
    with Catalogue.open(tmp_path):
        pass
    monkeypatch.undo()
    refusal = f"version {VERSION}; this GuideSpace supports versions to {VERSION - 1}"
    with pytest.raises(HomeError, match=refusal), Catalogue.open(tmp_path):
        pass
    assert applied(tmp_path)[-1] == (VERSION, "next")


def test_a_file_of_a_newer_duckdb_is_refused_and_not_changed(tmp_path: Path) -> None:
    content = gzip.decompress(Path(__file__).with_name("newer_duckdb.duckdb.gz").read_bytes())
    (tmp_path / CATALOGUE_FILE).write_bytes(content)
    with pytest.raises(HomeError, match="was written by a newer DuckDB"), Catalogue.open(tmp_path):
        pass
    assert (tmp_path / CATALOGUE_FILE).read_bytes() == content


def test_a_failed_migration_is_rolled_back(tmp_path: Path, with_migration) -> None:
    with Catalogue.open(tmp_path):
        pass
    with_migration(BROKEN)
    with pytest.raises(duckdb.Error, match="no_such_column"), Catalogue.open(tmp_path):
        pass
    assert query(tmp_path, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'half'") == [(0,)]


def test_views_are_applied_again_when_their_file_changes(tmp_path: Path, monkeypatch) -> None:
    """And views of earlier versions are removed."""
    with Catalogue.open(tmp_path) as catalogue:
        catalogue.connection.execute("CREATE VIEW titles AS FROM programmes; DROP VIEW episodes")
        catalogue.connection.execute("CREATE MACRO parse_episode(system, number) AS NULL")
    with Catalogue.open(tmp_path):
        pass
    views = "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
    assert ("titles",) in query(tmp_path, views)
    changed = tmp_path / "views.sql"
    changed.write_text(connection.VIEWS_FILE.read_text(encoding="utf-8") + "-- changed", encoding="utf-8")
    monkeypatch.setattr(connection, "VIEWS_FILE", changed)
    with Catalogue.open(tmp_path):
        pass
    assert query(tmp_path, views) == [("channels",), ("episodes",), ("programme_titles",), ("schedule",)]
    macros = "SELECT function_name FROM duckdb_functions() WHERE NOT internal"
    assert query(tmp_path, macros) == [("programmes_as_of",)]


@pytest.mark.parametrize("count", [0, VERSION - 4])
def test_a_process_killed_after_the_migrations_leaves_a_home_that_opens(tmp_path: Path, count: int) -> None:
    """DuckDB cannot replay an ALTER TABLE of a table with a CHECK (duckdb/duckdb#18259)."""
    if count:
        migrate_home(tmp_path, count)
    code = (
        "import os, sys; from pathlib import Path; from storage.catalogue.connection import Catalogue\n"
        "with Catalogue.open(Path(sys.argv[1])) as catalogue:\n"
        f"    catalogue.connection.execute({FEED!r}); os._exit(9)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT)
    assert killed.returncode == 9 and (tmp_path / f"{CATALOGUE_FILE}.wal").exists()
    with Catalogue.open(tmp_path) as catalogue:
        assert catalogue.connection.execute("SELECT source FROM feeds").fetchall() == [("a",)]
    assert {file.name for file in tmp_path.iterdir()} == {CATALOGUE_FILE}


def test_a_log_that_duckdb_cannot_replay_is_named(tmp_path: Path) -> None:
    code = (
        "import duckdb, os, sys; connection = duckdb.connect(sys.argv[1])\n"
        "connection.execute('CREATE TABLE t (a INTEGER, CHECK (a = a + 0))')\n"
        "connection.execute('ALTER TABLE t ADD COLUMN b INTEGER'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / CATALOGUE_FILE)])
    refusal = rf"cannot read .*{CATALOGUE_FILE}\.wal.*Move it away"
    with pytest.raises(HomeError, match=refusal), Catalogue.open(tmp_path):
        pass
    (tmp_path / f"{CATALOGUE_FILE}.wal").unlink()
    with Catalogue.open(tmp_path) as catalogue:
        assert catalogue.schema_version == VERSION - 1
