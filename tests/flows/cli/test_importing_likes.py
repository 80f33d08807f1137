"""Import of likes from the database of a player and from an export."""

import datetime
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from flows.cli.likes import import_likes
from storage.catalogue.likes import hash_viewer, read_likes, set_viewer_zone
from storage.home.workspace import Workspace
from tests.tasks.likes.test_exports import HISTORY, PAUSED, RATINGS
from tests.tasks.likes.test_players import JELLYFIN, KODI

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture
def home(tmp_path):
    return str(Workspace(tmp_path / "home").home)


def stored_likes(home, viewer):
    opinions, seen = (table.to_pylist() for table in read_likes(home, hash_viewer(home, viewer)))
    return {row["show_key"]: round(row["value"], 2) for row in opinions}, [row["show_key"] for row in seen]


def test_a_paused_film_is_no_opinion_and_not_seen(home, tmp_path):
    file = tmp_path / "jellyfin.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(JELLYFIN)
    assert "4 rows of 2 viewers about 2 titles" in import_likes(home, file, "me", NOW)
    opinions, seen = stored_likes(home, "ann")
    assert opinions == {"casablanca": 1.0, "midsomer murders": 0.5} and "paused" not in seen


def test_an_export_and_a_table_are_both_read(home, tmp_path):
    for name, rows in (("history", HISTORY), ("ratings", RATINGS), ("progress", PAUSED)):
        (tmp_path / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")
        import_likes(home, tmp_path / f"{name}.json", "Ann", NOW)
    (tmp_path / "likes.json").write_text('[{"title": "Newsnight", "liked": false}]', encoding="utf-8")
    assert "1 rows of 1 viewer about 1 titles, 1 of them new" in import_likes(
        home, tmp_path / "likes.json", "Ann", NOW
    )
    opinions, seen = stored_likes(home, "Ann")
    # of the series one episode was watched (0.5) and rated 1 of 10 (-1)
    assert opinions == {"casablanca": 1.0, "midsomer murders": -0.25, "newsnight": -1.0}
    assert seen == ["casablanca", "midsomer murders"]


def test_times_without_a_zone_are_in_the_zone_of_the_viewer(home, tmp_path):
    file = tmp_path / "MyVideos119.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(KODI)
    set_viewer_zone(Path(home), "Ann", "Asia/Tokyo")
    import_likes(home, file, "Ann", NOW)
    rows = read_likes(home, hash_viewer(home, "Ann"))[0].to_pylist()
    (watched,) = (row["time"] for row in rows if row["show_key"] == "casablanca")
    assert watched == datetime.datetime(2025, 12, 30, 12, 30)  # 21:30 in Tokyo
