"""The queries of docs/sql.md on the toy world, and the command sql."""

import datetime
import json
import re
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from prefect.logging import disable_run_logger

from flows.cli.sql import query_rows, run_folders
from storage.artifacts import Clustering, Tonight
from storage.catalogue.views import VIEWS, QueryError
from storage.formats.tonight import RECOMMENDATIONS
from storage.home.latest import write_latest
from storage.home.workspace import HomeError, Workspace, newest_first
from tasks.embed.task import embed
from tests import worlds

PAGE = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
TONIGHT, ELSEWHERE, MOST, TASTE, ROSE, TELLING, DROPPED = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def home(learnt):
    """Home after a finished run with a clustering."""
    home, _, _, corpus, _, encoder = learnt
    with disable_run_logger():
        vectors = embed.fn(str(home), corpus, encoder)
        worlds.publish_clusters(home, corpus, vectors)
    with Workspace(home).publishing(Tonight, "20260114-1800") as draft:
        pq.write_table(RECOMMENDATIONS.empty_table(), draft.folder / "tonight.parquet")
    folders = dict.fromkeys(("map", "scores", "model"), home) | {"corpus": home / corpus.path}
    write_latest(home, folders | {"champion": True})
    yield home
    (home / "latest.json").unlink()


def test_tonight_in_the_cluster_of_a_title(home):
    title, category = worlds.titles()[4]
    found = query_rows(home, TONIGHT, [f"title={title}", f"evening={worlds.START:%Y-%m-%d %H:%M}"])
    rows = [tuple(row.values()) for row in found]
    assert len(rows) > 10 and rows == sorted(rows)
    kinds = dict(worlds.titles())
    assert sum(kinds[row["title"]] == category for row in found) > 0.9 * len(found)
    assert {row["channel_name"] for row in found} == {"Channel One"}


def test_tonight_in_the_cluster_finds_every_form_of_a_title(home):
    """The second channel shows every title three days later, under an episode's mark."""
    title, _ = worlds.titles()[4]
    evenings = (worlds.START + days * datetime.timedelta(days=1) for days in (0, 3))
    first, later = (
        query_rows(home, TONIGHT, [f"title={title}", f"evening={at:%Y-%m-%d %H:%M}"]) for at in evenings
    )
    assert [re.sub(r" \(\d+\)$", "", row["title"]) for row in later] == [row["title"] for row in first]
    assert {row["channel_name"] for row in later} == {"Channel Two"}
    assert f"{title} (4)" in {row["title"] for row in later}


def test_every_programme_is_an_airing_of_its_title(home):
    query = "SELECT t.title AS show, a.title, a.channel FROM airings a JOIN titles t USING (title_id)"
    expected = [(title, title, "one") for title, _ in worlds.titles()]
    expected += [(title, f"{title} ({number})", "two") for number, (title, _) in enumerate(worlds.titles())]
    assert sorted(tuple(row.values()) for row in query_rows(home, query, [])) == sorted(expected)


def test_neighbours_on_other_channels(home):
    assert (
        query_rows(home, ELSEWHERE, [f"title={worlds.titles()[0][0]}"]) == []
    )  # each title is on both channels
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE titles AS FROM (VALUES (0, 'A', ['one']), (1, 'B', ['two']), "
            " (2, 'C', ['two', 'one']), (3, 'D', ['three'])) AS t(title_id, title, channels)"
        )
        connection.execute(
            "CREATE TABLE neighbours AS FROM (VALUES (0, 3, 3, .5), (0, 1, 1, .81234), (0, 2, 2, .7),"
            " (1, 0, 1, .9)) AS n(title_id, neighbour_id, rank, cosine)"
        )
        found = connection.execute(ELSEWHERE, {"title": "A"}).fetchall()
    assert [(title, float(cosine)) for title, cosine, _ in found] == [("B", 0.812), ("D", 0.5)]


def test_the_cluster_that_each_channel_shows_most(home):
    found = query_rows(home, MOST, [])
    assert [row["channel_name"] for row in found] == ["Channel One", "Channel Two"]
    assert all(row["airings"] > 10 for row in found)


def test_titles_nearest_to_a_channels_taste(home):
    found = query_rows(home, TASTE, ["channel=Channel One"])
    shown = {
        row["title_id"]
        for row in query_rows(home, "SELECT title_id FROM airings WHERE channel_name = 'Channel One'", [])
    }
    vectors = {row["title_id"]: row["vector"] for row in query_rows(home, "FROM vectors", [])}
    table = np.array([*vectors.values()])
    mean = np.mean([vector for title, vector in vectors.items() if title in shown], axis=0)
    best = np.sort(table @ mean / np.linalg.norm(mean) / np.linalg.norm(table, axis=1))[::-1][:10]
    np.testing.assert_allclose([row["cosine"] for row in found], best, atol=1e-3)


def test_every_view_has_the_columns_that_the_page_names(home):
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| (.*) \|$", PAGE, re.MULTILINE)
    assert [name for name, _ in rows] == list(VIEWS)
    for name, columns in rows:
        there = {row["column_name"] for row in query_rows(home, f"DESCRIBE {name}", [])}
        named = set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", columns)))
        assert named and named <= there, name


def test_the_command_prints_rows_and_explains_what_is_wrong(home, capsys):
    from flows.cli.main import main

    query = "SELECT title_id FROM clusters WHERE title = $title"
    title = f"title={worlds.titles()[0][0]}"
    assert main(["sql", "--home", str(home), "--json", "--with", title, query]) == 0
    assert [list(row) for row in json.loads(capsys.readouterr().out)] == [["title_id"]]
    assert main(["sql", "--home", str(home), "SELECT 1 AS one, NULL AS none"]) == 0
    assert capsys.readouterr().out == "one  none\n1       –\n"
    assert main(["sql", "--home", str(home), "SELECT 1 WHERE false"]) == 0
    assert capsys.readouterr().out == "no rows\n"
    assert main(["sql", "--home", str(home), "SELECT * FROM clutsers"]) == 2
    assert "views: programmes, channels, titles" in capsys.readouterr().err
    with pytest.raises(QueryError, match="clutsers"):
        query_rows(home, "FROM clutsers", [])


def test_json_has_every_column_and_only_what_json_has(home, capsys):
    from flows.cli.main import main

    query = (
        "SELECT 1 AS a, 2 AS a, 0.5 AS half, 'nan'::DOUBLE AS none, [DATE '2025-03-01'] AS days,"
        " {'x': 1e308 * 10} AS deep, true AS yes"
    )
    assert main(["sql", "--home", str(home), "--json", query]) == 0
    expected = {"a": 1, "a_1": 2, "half": 0.5, "none": None, "days": ["2025-03-01"], "deep": {"x": None}}
    expected["yes"] = True
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == [expected]


@pytest.mark.parametrize("query", ["", " ; ", "-- nothing"])
def test_an_empty_query_is_refused(home, query):
    with pytest.raises(QueryError, match="empty"):
        query_rows(home, query, [])


def test_a_home_without_a_finished_run_is_refused(tmp_path):
    with pytest.raises(HomeError):
        run_folders(tmp_path)


def test_words_that_became_more_frequent(home):
    """Of 10 titles this week 6 hold "cup", of 20 before 2: (6 + 1) / 10 against (2 + 1) / 20. "news" fell,
    "rare" is below the bound."""
    query_rows(home, ROSE, ["titles=1"])  # on the real table
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE words (slice VARCHAR, value VARCHAR, token VARCHAR, titles BIGINT)")
        weeks = {
            "2025-03-03": {"cup": 1, "news": 9},
            "2025-03-10": {"cup": 1, "news": 9},
            "2025-03-17": {"cup": 6, "news": 3, "rare": 1},
        }
        connection.executemany(
            "INSERT INTO words VALUES ('week', ?, ?, ?)",
            [(week, token, count) for week, counts in weeks.items() for token, count in counts.items()],
        )
        connection.execute("INSERT INTO words VALUES ('language', 'en', 'news', 99)")
        assert connection.execute(ROSE, {"titles": 2}).fetchall() == [("cup", 6, 2, 4.67)]
        assert [row[0] for row in connection.execute(ROSE, {"titles": 1}).fetchall()] == ["cup", "rare"]


def test_words_that_are_typical_of_a_category(home):
    found = [tuple(row.values()) for row in query_rows(home, TELLING, ["category=cookery", "titles=10"])]
    assert {row[0] for row in found[:5]} <= set(worlds.WORDS["cookery"])
    assert all(row[2] == 1 for row in found[:5])
    assert found[-1][1] >= 10


def test_dropped_categories(home):
    assert query_rows(home, DROPPED, []) == []  # the toy world's three are labels
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE dropped AS FROM (VALUES ('a', 'generic', 5), ('b', 'digits', 9),"
            " ('c', 'generic', 6)) AS d(category, reason, titles)"
        )
        assert connection.execute(DROPPED).fetchall() == [("generic", 2, 11), ("digits", 1, 9)]


def test_a_query_does_not_change_which_clustering_is_the_previous_one(home, tmp_path):
    copied = shutil.copytree(home, tmp_path / "home")
    workspace = Workspace(copied)
    with workspace.publishing(Clustering, "of another corpus"):
        pass
    before = list(newest_first(workspace, Clustering))
    files = {file: file.read_bytes() for file in copied.rglob("artifact.json")}
    assert query_rows(copied, "SELECT count(*) AS clusters FROM clusters", [])
    assert list(newest_first(workspace, Clustering)) == before
    assert {file: file.read_bytes() for file in copied.rglob("artifact.json")} == files
