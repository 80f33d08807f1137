"""Watched lists of Kodi and Jellyfin, from databases with the tables that their documentation names."""

import datetime
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tasks.likes.players import read_player
from tasks.likes.tables import LikesError

AT = datetime.datetime(2026, 1, 1)
BERLIN = datetime.timezone(datetime.timedelta(hours=1))
# Columns of Kodi 19 (MyVideos119), those of c00 to c23 that nothing here reads left out.
KODI = """
    CREATE TABLE version (idVersion integer, iCompressCount integer);
    CREATE TABLE files (idFile integer primary key, idPath integer, strFilename text, playCount integer,
        lastPlayed text, dateAdded text);
    CREATE TABLE movie (idMovie integer primary key, idFile integer, c00 text, idSet integer,
        userrating integer, premiered text);
    CREATE TABLE tvshow (idShow integer primary key, c00 text, userrating integer, duration INTEGER);
    CREATE TABLE episode (idEpisode integer primary key, idFile integer, c00 text, c12 varchar(24),
        c13 varchar(24), idShow integer, userrating integer, idSeason integer);
    CREATE TABLE bookmark (idBookmark integer primary key, idFile integer, timeInSeconds double,
        totalTimeInSeconds double, thumbNailImage text, player text, playerState text, type integer);
    INSERT INTO files VALUES (1, 1, 'a.mkv', 2, '2025-12-30 21:30:00', ''), (2, 1, 'b.mkv', NULL, NULL, ''),
        (3, 1, 'c.mkv', 1, '2025-12-31 20:00:00', ''), (4, 1, 'd.mkv', NULL, '2025-12-31 22:00:00', ''),
        (5, 1, 'e.mkv', 1, NULL, ''), (6, 1, 'f.mkv', NULL, '2025-12-31 23:00:00', '');
    INSERT INTO movie VALUES (1, 1, 'Casablanca', NULL, 9, '1942'), (2, 2, 'Never Watched', NULL, 0, '2000'),
        (3, 4, 'Paused', NULL, NULL, '2001'), (4, 5, 'Watched Once', NULL, NULL, '2002'),
        (5, 6, 'Almost to the End', NULL, NULL, '2003');
    INSERT INTO tvshow VALUES (1, 'Midsomer Murders', 0, 0);
    INSERT INTO episode VALUES (1, 3, 'The Killings at Badger''s Drift', '1', '1', 1, NULL, 1);
    INSERT INTO bookmark VALUES (1, 4, 1200, 6000, NULL, '', '', 1), (2, 3, 10, 6000, NULL, '', '', 0),
        (3, 6, 5000, 6000, NULL, '', '', 1);
"""
# Tables and columns of Jellyfin 10.11, those that nothing here reads left out.
JELLYFIN = """
    CREATE TABLE "Users" ("Id" TEXT PRIMARY KEY, "Username" TEXT NOT NULL);
    CREATE TABLE "BaseItems" ("Id" TEXT PRIMARY KEY, "Type" TEXT NOT NULL, "Name" TEXT, "SeriesName" TEXT,
        "IndexNumber" INTEGER, "ParentIndexNumber" INTEGER, "RunTimeTicks" INTEGER);
    CREATE TABLE "UserData" ("ItemId" TEXT NOT NULL, "UserId" TEXT NOT NULL, "CustomDataKey" TEXT NOT NULL,
        "Rating" REAL, "PlaybackPositionTicks" INTEGER NOT NULL, "PlayCount" INTEGER NOT NULL,
        "IsFavorite" INTEGER NOT NULL, "LastPlayedDate" TEXT, "Played" INTEGER NOT NULL, "Likes" INTEGER,
        PRIMARY KEY ("ItemId", "UserId", "CustomDataKey"));
    INSERT INTO Users VALUES ('U1', 'ann'), ('U2', 'bob');
    INSERT INTO BaseItems VALUES
        ('M1', 'MediaBrowser.Controller.Entities.Movies.Movie', 'Casablanca', NULL, NULL, NULL, 60000000000),
        ('M2', 'MediaBrowser.Controller.Entities.Movies.Movie', 'Paused', NULL, NULL, NULL, 60000000000),
        ('S1', 'MediaBrowser.Controller.Entities.TV.Series', 'Midsomer Murders', NULL, NULL, NULL, NULL),
        ('E1', 'MediaBrowser.Controller.Entities.TV.Episode', 'Badger''s Drift', 'Midsomer Murders', 1, 1,
            60000000000),
        ('A1', 'MediaBrowser.Controller.Entities.Audio.Audio', 'A Song', NULL, 1, NULL, 2000000000);
    INSERT INTO UserData VALUES
        ('M1', 'U1', 'tt0034583', NULL, 0, 1, 1, '2025-12-30 20:30:00.1234567', 1, NULL),
        ('M1', 'U1', 'M1', NULL, 0, 0, 0, NULL, 0, NULL),
        ('M2', 'U1', 'M2', NULL, 12000000000, 0, 0, '2025-12-30 21:00:00', 0, NULL),
        ('E1', 'U1', 'E1', NULL, 0, 1, 0, '2025-12-31 20:00:00', 1, NULL),
        ('S1', 'U2', 'S1', NULL, 0, 0, 0, NULL, 0, 0),
        ('M1', 'U2', 'M1', 2.0, 0, 1, 0, '2025-12-30 20:30:00', 1, NULL),
        ('A1', 'U1', 'A1', NULL, 0, 9, 1, NULL, 1, NULL);
"""


def make(path: Path, script: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def test_a_library_of_kodi(tmp_path):
    rows = read_player(make(tmp_path / "MyVideos119.db", KODI), "me", AT, BERLIN).to_pylist()
    found = {row["title"]: row for row in rows}
    assert set(found) == {"Casablanca", "Almost to the End", "Watched Once", "Midsomer Murders"}
    assert {row["viewer"] for row in rows} == {"me"}
    film, series = found["Casablanca"], found["Midsomer Murders"]
    assert (film["source"], film["episode"], film["seen"]) == ("stated", "", True)
    assert film["value"] == pytest.approx(7 / 9) and film["time"] == datetime.datetime(2025, 12, 30, 20, 30)
    about = [series[name] for name in ("source", "episode", "sub_title", "value", "seen")]
    assert about == ["kodi", "s1e1", "The Killings at Badger's Drift", 0.5, True]
    end, once = found["Almost to the End"], found["Watched Once"]
    assert end["value"] == 0.5 and end["seen"]
    assert once["time"] == AT and once["value"] == 0.5 and once["seen"]


def test_values_of_other_types_in_a_library(tmp_path):
    library = make(tmp_path / "MyVideos119.db", KODI + "UPDATE episode SET c12 = '';")
    rows = read_player(library, "me", AT, BERLIN).to_pylist()
    assert {row["title"]: row["episode"] for row in rows}["Midsomer Murders"] == "e1"
    make(tmp_path / "MyVideos119.db", "UPDATE episode SET c12 = 'one';")
    with pytest.raises(LikesError, match="cannot be read as a database"):
        read_player(library, "me", AT, BERLIN)


def test_a_library_of_jellyfin_names_its_users(tmp_path):
    rows = read_player(make(tmp_path / "jellyfin.db", JELLYFIN), "me", AT, BERLIN).to_pylist()
    found = {(row["viewer"], row["title"]): row for row in rows}
    people = "ann", "bob"
    assert set(found) == {(who, what) for who in people for what in ("Casablanca", "Midsomer Murders")}
    assert len(rows) == 4
    favourite = found["ann", "Casablanca"]
    assert (favourite["value"], favourite["seen"], favourite["source"]) == (1.0, True, "stated")
    assert favourite["time"].replace(microsecond=0) == datetime.datetime(2025, 12, 30, 20, 30)
    episode = found["ann", "Midsomer Murders"]
    about = [episode[name] for name in ("episode", "sub_title", "value", "seen", "source")]
    assert about == ["s1e1", "Badger's Drift", 0.5, True, "jellyfin"]
    disliked = found["bob", "Midsomer Murders"]
    assert (disliked["value"], disliked["seen"], disliked["time"]) == (-1.0, False, AT)
    assert found["bob", "Casablanca"]["value"] == pytest.approx(-7 / 9)


def test_a_database_of_playback_reporting(tmp_path):
    columns = "DateCreated, UserId, ItemId, ItemType, ItemName, PlaybackMethod, ClientName, DeviceName"
    plays = [("2025-12-30 20:00:00Z", "u1", "Midsomer Murders - s01e02 - Badger", "Episode", 2400)]
    plays += [("2025-12-31 20:00:00Z", "u1", "Paused", "Movie", 1200)]
    lines = [
        f"('{at}', '{user}', '', '{kind}', '{name}', '', '', '', {n})" for at, user, name, kind, n in plays
    ]
    script = f"CREATE TABLE PlaybackActivity ({columns}, PlayDuration INT);"
    path = make(
        tmp_path / "playback_reporting.db", f"{script} INSERT INTO PlaybackActivity VALUES {','.join(lines)}"
    )
    (row,) = read_player(path, "me", AT, BERLIN).to_pylist()
    assert [row[name] for name in ("viewer", "show_key", "episode")] == ["me", "midsomer murders", "s1e2"]
    assert row["time"] == datetime.datetime(2025, 12, 30, 20)


def test_the_player_may_have_it_open_and_it_stays_as_it_is(tmp_path):
    path = make(tmp_path / "MyVideos119.db", KODI)
    before = path.read_bytes()
    with closing(sqlite3.connect(path)) as player:
        player.execute("BEGIN IMMEDIATE")
        assert len(read_player(path, "me", AT, None)) == 4
    assert path.read_bytes() == before and [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "CREATE TABLE music (a); CREATE TABLE songs (b)",
            "has the tables music, songs; expected MyVideosNNN.db",
        ),
        ("CREATE TABLE UserData (a); CREATE TABLE BaseItems (b); CREATE TABLE Users (c)", "no such column"),
    ],
)
def test_another_database_is_refused(tmp_path, script, words):
    with pytest.raises(LikesError, match=words):
        read_player(make(tmp_path / "x.db", script), "me", AT, None)


def test_files_that_are_no_database_are_refused(tmp_path):
    (tmp_path / "x.db").write_text("what is no database " * 100, encoding="utf-8")
    with pytest.raises(LikesError, match="file is not a database"):
        read_player(tmp_path / "x.db", "me", AT, None)
