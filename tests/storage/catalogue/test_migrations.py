import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from storage.catalogue.connection import FILE, Catalogue, Migration, read_migrations
from storage.home.workspace import HomeError
from storage.stages import ROOT

NEXT = Migration(
    version=len(read_migrations()) + 1,
    name="next",
    sql="ALTER TABLE feeds ADD COLUMN etag VARCHAR; CREATE VIEW v AS FROM feeds;",
)
BROKEN = Migration(
    version=NEXT.version,
    name="broken",
    sql="CREATE TABLE half (a INTEGER); SELECT no_such_column FROM feeds;",
)
FEED = (
    "INSERT INTO feeds (feed_id, source, content_digest, bytes, read_at, grabbed_at, seen, stored, "
    "duplicates, rejected) VALUES (1, 'a', 'd', 1, now()::TIMESTAMP, now()::TIMESTAMP, 0, 0, 0, 0)"
)


def applied(home: Path) -> list[tuple[int, str]]:
    with duckdb.connect(str(home / FILE)) as connection:
        return connection.execute("SELECT version, name FROM migrations ORDER BY version").fetchall()


def test_an_empty_home_comes_to_the_newest_version(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        assert catalogue.schema_version == len(read_migrations())
    assert applied(tmp_path) == [(migration.version, migration.name) for migration in read_migrations()]


def test_an_older_home_is_brought_up_and_keeps_its_rows(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        catalogue.connection.execute(FEED)
    with Catalogue.open(tmp_path, [*read_migrations(), NEXT]) as catalogue:
        assert catalogue.connection.execute("SELECT source, etag FROM v").fetchall() == [("a", None)]
    assert applied(tmp_path)[-1] == (NEXT.version, "next")
    with Catalogue.open(tmp_path, [*read_migrations(), NEXT]):  # again: nothing to do
        pass


def test_each_prefix_of_the_migrations_leads_to_the_newest(tmp_path: Path) -> None:
    steps = read_migrations()
    for count in range(len(steps)):
        home = tmp_path / str(count)
        home.mkdir()
        with Catalogue.open(home, steps[:count]):
            pass
        with Catalogue.open(home):
            pass
        assert len(applied(home)) == len(steps)


def test_a_newer_home_is_refused_and_left_alone(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path, [*read_migrations(), NEXT]):
        pass
    with (
        pytest.raises(
            HomeError,
            match=f"version {NEXT.version}; this GuideSpace supports versions to {NEXT.version - 1}",
        ),
        Catalogue.open(tmp_path),
    ):
        pass
    assert applied(tmp_path)[-1] == (NEXT.version, "next")


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path):
        pass
    with (
        pytest.raises(duckdb.Error, match="no_such_column"),
        Catalogue.open(tmp_path, [*read_migrations(), BROKEN]),
    ):
        pass
    with Catalogue.open(tmp_path) as catalogue:
        assert catalogue.connection.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'half'"
        ).fetchall() == [(0,)]


@pytest.mark.parametrize("known", [0, len(read_migrations()) - 3])
def test_a_process_killed_after_the_migrations_leaves_a_home_that_opens(tmp_path: Path, known: int) -> None:
    """DuckDB cannot replay an ALTER TABLE of a table with a CHECK (duckdb/duckdb#18259)."""
    if known:
        with Catalogue.open(tmp_path, read_migrations()[:known]):
            pass
    code = (
        "import os, sys; from pathlib import Path; from storage.catalogue.connection import Catalogue\n"
        "with Catalogue.open(Path(sys.argv[1])) as catalogue:\n"
        f"    catalogue.connection.execute({FEED!r}); os._exit(9)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT)
    assert killed.returncode == 9 and (tmp_path / f"{FILE}.wal").exists()
    with Catalogue.open(tmp_path) as catalogue:
        assert catalogue.connection.execute("SELECT source FROM feeds").fetchall() == [("a",)]
    assert {file.name for file in tmp_path.iterdir()} == {FILE}


def test_a_log_that_duckdb_cannot_replay_is_named(tmp_path: Path) -> None:
    code = (
        "import duckdb, os, sys; connection = duckdb.connect(sys.argv[1])\n"
        "connection.execute('CREATE TABLE t (a INTEGER, CHECK (a = a + 0))')\n"
        "connection.execute('ALTER TABLE t ADD COLUMN b INTEGER'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / FILE)])
    told = pytest.raises(HomeError, match=rf"cannot read .*{FILE}\.wal.*Move it away")
    with told, Catalogue.open(tmp_path):
        pass
    (tmp_path / f"{FILE}.wal").unlink()
    with Catalogue.open(tmp_path) as catalogue:
        assert catalogue.schema_version == len(read_migrations())


def test_numbers_have_no_gap(tmp_path: Path) -> None:
    (tmp_path / "0001_a.sql").write_text("", encoding="utf-8")
    (tmp_path / "0003_b.sql").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="expected 0002_name"):
        read_migrations(tmp_path)
