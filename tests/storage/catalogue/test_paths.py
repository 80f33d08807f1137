"""A home whose path contains characters of glob patterns."""

import re
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from storage.artifacts import Corpus, Guide, Vocabulary
from storage.catalogue.connection import escape_glob
from storage.catalogue.feed_statistics import feed_days
from storage.catalogue.views import run_query, view_statements
from storage.home.workspace import HomeError, Workspace
from tests import worlds


@pytest.mark.parametrize("name", ["plain", "a[1]*b?", "*", "[", "[!a]", "[*]", "a]", "**"])
def test_special_characters_of_paths_are_escaped(tmp_path: Path, name: str) -> None:
    for number, folder in enumerate((name, "a1Xbc", "b", "a")):
        (tmp_path / folder).mkdir()
        duckdb.sql(f"SELECT {number} AS number").write_parquet(str(tmp_path / folder / "x.parquet"))
    file = tmp_path / name / "x.parquet"
    assert duckdb.execute("FROM read_parquet(?)", [escape_glob(file)]).fetchall() == [(0,)]
    assert duckdb.execute("FROM read_parquet(?)", [[escape_glob(file)]]).fetchall() == [(0,)]
    assert duckdb.sql(f"FROM '{escape_glob(file)}'").fetchall() == [(0,)]


def test_the_same_feeds_give_the_same_corpus_wherever_the_home_is(
    toy: tuple[Path, Guide, Vocabulary, Corpus], tmp_path: Path
) -> None:
    (plain, *made), pattern = toy, tmp_path / "a[1]*b"  # matches a1b and the like
    (tmp_path / "a1b").symlink_to(plain)
    (tmp_path / "a1").mkdir()
    (tmp_path / "a1*b").symlink_to(plain)
    found = worlds.publish_corpus(pattern, worlds.programmes())
    assert [artifact.counts for artifact in found] == [artifact.counts for artifact in made]
    for artifact, other in zip(found, made, strict=True):
        names = sorted(file.name for file in (pattern / artifact.path).glob("*.parquet"))
        here, there = ([pq.read_table(home / one.path / name) for name in names]
                       for home, one in ((pattern, artifact), (plain, other)))  # fmt: skip
        assert names and all(one.equals(another) for one, another in zip(here, there, strict=True))
    assert feed_days(pattern / found[0].path) == feed_days(plain / made[0].path)
    folders = {"guide": pattern / found[0].path, "corpus": pattern / found[2].path}
    folders |= {"clustering": pattern, "nearest": pattern}
    for name in ("clusters", "neighbours", "vectors"):
        row = duckdb.sql("SELECT 0 AS title_id, 0 AS cluster, '' AS cluster_name")
        row.write_parquet(str(pattern / f"{name}.parquet"))
    counts = ", ".join(f"(SELECT count(*) FROM {view})" for view in ("programmes", "titles", "words"))
    files = (folders["guide"] / "programmes", folders["corpus"] / "titles", folders["corpus"] / "frequencies")
    expected = tuple(pq.read_metadata(f"{file}.parquet").num_rows for file in files)
    assert run_query(folders, f"SELECT {counts}")[1] == [expected]
    with duckdb.connect() as connection:  # and so do the statements that `guidespace sql` prints
        connection.execute(view_statements(folders))
        assert connection.execute(f"SELECT {counts}").fetchall() == [expected]


def test_a_home_with_a_question_mark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match=re.escape("DuckDB and SQLite interpret text after '?' as options")):
        Workspace(tmp_path / "what?")
    assert not (tmp_path / "what?").exists()
