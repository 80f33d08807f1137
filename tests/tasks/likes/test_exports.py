"""Exports of Trakt, Plex, Emby and Playback Reporting, with the fields that their documentation names."""

import datetime
import json
import zipfile
from pathlib import Path

import pytest

from tasks.likes.exports import read_export
from tasks.likes.tables import LikesError

AT = datetime.datetime(2026, 1, 1)
BERLIN = datetime.timezone(datetime.timedelta(hours=1))
FILM = {"title": "Casablanca", "year": 1942, "ids": {"trakt": 1, "imdb": "tt0034583"}}
SERIES = {"title": "Midsomer Murders", "year": 1997, "ids": {"trakt": 2}}
EPISODE = {"season": 1, "number": 2, "title": "Badger's Drift", "ids": {"trakt": 3}}
HISTORY = [
    {"id": 1, "watched_at": "2025-12-30T20:00:00.000Z", "action": "scrobble", "type": "movie", "movie": FILM},
    {"id": 2, "watched_at": "2025-12-31T20:00:00.000Z", "action": "watch", "type": "episode", "show": SERIES}
    | {"episode": EPISODE},
]
RATINGS = [
    {"rated_at": "2025-12-30T21:00:00.000Z", "rating": 10, "type": "movie", "movie": FILM},
    {
        "rated_at": "2025-12-31T21:00:00.000Z",
        "rating": 1,
        "type": "episode",
        "show": SERIES,
        "episode": EPISODE,
    },
    {"rated_at": "2025-12-31T21:00:00.000Z", "rating": 1, "type": "season", "show": SERIES}
    | {"season": {"number": 1}},
]
PAUSED = [
    {"progress": 20, "paused_at": "2025-12-31T21:00:00.000Z", "id": 3, "type": "movie", "movie": FILM},
    {"listed_at": "2025-12-31T21:00:00.000Z", "type": "show", "show": SERIES},
]


def read(file: Path, content: object) -> list[tuple]:
    """Returns title, episode, source, value and whether it was seen, of each row."""
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return read_rows(file)


def read_rows(file: Path) -> list[tuple]:
    names = "title", "episode", "source", "value", "seen"
    return [tuple(row[name] for name in names) for row in rows_of(file)]


def rows_of(file: Path) -> list[dict]:
    found = read_export(file, "me", AT, BERLIN)
    assert found is not None
    return found.to_pylist()


def test_the_archive_of_trakt(tmp_path):
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("me/watched-history-1.json", json.dumps(HISTORY))
        archive.writestr("me/ratings-movies.json", json.dumps(RATINGS[:1]))
        archive.writestr("me/ratings-episodes.json", json.dumps(RATINGS[1:2]))
        archive.writestr("me/ratings-seasons.json", json.dumps(RATINGS[2:]))
        archive.writestr("me/lists-watchlist.json", json.dumps(PAUSED))
        archive.writestr("me/user-profile.json", "{}")
    assert read_rows(file) == [
        ("Casablanca", "", "trakt", 0.5, True),
        ("Midsomer Murders", "s1e2", "trakt", 0.5, True),
        ("Casablanca", "", "stated", 1.0, False),
        ("Midsomer Murders", "s1e2", "trakt: rating", -1.0, False),
    ]
    times = [row["time"] for row in rows_of(file)]
    assert times[0] == datetime.datetime(2025, 12, 30, 20) and times[2] == datetime.datetime(2025, 12, 30, 21)


def test_files_of_trakt(tmp_path):
    assert read(tmp_path / "playback.json", PAUSED) == []
    assert read(tmp_path / "ratings-seasons.json", RATINGS[2:]) == []
    watched = {"plays": 1, "last_watched_at": "2025-12-31T20:00:00.000Z", "show": SERIES, "seasons": [
        {"number": 1, "episodes": [{"number": 2, "plays": 1, "last_watched_at": "2025-12-31T20:00:00.000Z"}]}
    ]}  # fmt: skip
    assert read(tmp_path / "watched-shows.json", [watched]) == [
        ("Midsomer Murders", "s1e2", "trakt", 0.5, True)
    ]


def test_items_of_plex(tmp_path):
    episode = {"type": "episode", "title": "Badger's Drift", "grandparentTitle": "Midsomer Murders"}
    episode |= {"parentIndex": 1, "index": 2}
    items = [
        {
            "type": "movie",
            "title": "Casablanca",
            "viewCount": 1,
            "lastViewedAt": 1767124800,
            "userRating": 10,
        },
        {"type": "movie", "title": "Paused", "viewOffset": 1200000, "duration": 6000000},
        {"type": "movie", "title": "Never Watched", "duration": 6000000},
        {"type": "show", "title": "Midsomer Murders", "viewCount": 7, "viewedLeafCount": 7},
        episode | {"viewCount": 2, "lastViewedAt": 1767124800},
        {"type": "track", "title": "A Song", "viewCount": 2},
    ]
    assert read(tmp_path / "all.json", {"MediaContainer": {"size": 6, "Metadata": items}}) == [
        ("Casablanca", "", "stated", 1.0, True),
        ("Midsomer Murders", "s1e2", "plex", 0.5, True),
    ]
    history = [episode | {"viewedAt": 1767124800, "accountID": account} for account in (1, 7)]
    rows = read(tmp_path / "history.json", {"MediaContainer": {"size": 2, "Metadata": history}})
    assert rows == [("Midsomer Murders", "s1e2", "plex", 0.5, True)] * 2
    assert [row["viewer"] for row in rows_of(tmp_path / "history.json")] == ["1", "7"]
    assert read(tmp_path / "empty.json", {"MediaContainer": {"size": 0}}) == []


def test_items_of_emby(tmp_path):
    def item(name, kind="Movie", series=None, **data):
        known = {"PlaybackPositionTicks": 0, "PlayCount": 0, "IsFavorite": False, "Played": False}
        number = {"SeriesName": series, "ParentIndexNumber": 1, "IndexNumber": 2} if series else {}
        return {"Name": name, "Type": kind, "RunTimeTicks": 60000000000, "UserData": known | data, **number}

    played = {"Played": True, "LastPlayedDate": "2025-12-30T20:30:00.0000000Z"}
    items = [
        item("Casablanca", **played),
        item("Paused", PlaybackPositionTicks=12000000000, LastPlayedDate="2025-12-30T20:30:00.0000000Z"),
        item("Never Watched"),
        item("Favourite", IsFavorite=True),
        item("Disliked", Likes=False),
        item("Badger's Drift", "Episode", "Midsomer Murders", **played),
        item("Midsomer Murders", "Series", **played),
        item("A Song", "Audio", **played),
    ]
    assert read(tmp_path / "items.json", {"Items": items, "TotalRecordCount": 8}) == [
        ("Casablanca", "", "emby", 0.5, True),
        ("Favourite", "", "stated", 1.0, False),
        ("Disliked", "", "stated", -1.0, False),
        ("Midsomer Murders", "s1e2", "emby", 0.5, True),
    ]


PLAYS = [
    ("2025-12-30 21:00:00.1234567", "u1", "i1", "Movie", "Casablanca", "DirectPlay", "Web", "TV", "4000"),
    ("2025-12-31 21:00:00", "u1", "i1", "Movie", "Casablanca", "DirectPlay", "Web", "TV", "1500"),
    ("2025-12-31 21:00:00", "u1", "i2", "Movie", "Paused", "DirectPlay", "Web", "TV", "1200"),
    ("2025-12-31 20:00:00Z", "u1", "i3", "Episode", 'A - B - s01e02 - The "End"', "Direct", "W", "T", "2500"),
    ("2025-12-31 20:00:00Z", "u1", "i4", "Episode", "Talk - s00e00 - One", "DirectPlay", "Web", "TV", "2500"),
    ("2025-12-31 20:00:00Z", "u1", "i5", "Audio", "A - Song (B)", "DirectPlay", "Web", "TV", "9000"),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_plays_of_playback_reporting(tmp_path, kind):
    lines = ["\t".join(play) for play in PLAYS]
    if kind == "csv":
        head = "DateCreated,UserId,ItemId,ItemType,ItemName,PlaybackMethod,ClientName,DeviceName,PlayDuration"
        lines = [
            head,
            *(",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in play) for play in PLAYS),
        ]
    file = tmp_path / f"PlaybackReportingBackup-20260101.{kind}"
    assert read(file, "\r\n".join(lines) + "\r\n") == [
        ("Casablanca", "", "playback reporting", 0.5, True),
        ("A - B", "s1e2", "playback reporting", 0.5, True),
        ("Talk", "", "playback reporting", 0.5, True),
    ]
    rows = rows_of(file)
    assert [row["viewer"] for row in rows] == ["me"] * 3
    assert [row["time"].hour for row in rows] == [20, 20, 20]  # local and UTC
    assert rows[1]["sub_title"] == 'The "End"'
    read(file, "\r\n".join([*lines, lines[-3].replace("u1", "u2")]))
    assert [row["viewer"] for row in rows_of(file)] == ["u1", "u1", "u1", "u2"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '[{"title": "Tatort", "liked": true}]'),
        ("a.json", '{"title": "Tatort", "liked": true}\n{"title": "News", "liked": false}'),
        ("a.json", "[]"),
        ("a.csv", "title,liked\nTatort,1\n"),
        ("a.csv", "title\tliked\nTatort\t1\n"),
        ("a.parquet", ""),
    ],
)
def test_a_table_is_no_export(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert read_export(tmp_path / name, "me", AT, None) is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '[{"type": "movie", "watched_at": "2025-12-31", "movie": {"year": 1942}}]'),
        ("a.json", '{"Items": [{"Name": "x"}]}'),
        ("a.json", '{"MediaContainer": {"Metadata": [{"type": "movie"}]}}'),
        ("a.tsv", "\t".join([*PLAYS[0][:8], "long"])),
        ("a.zip", "no archive"),
    ],
)
def test_an_export_with_other_fields_is_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(LikesError, match=f"{name} does not match the documented export format"):
        read_export(tmp_path / name, "me", AT, None)


def test_an_archive_of_something_else_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("guide.xml", "<tv/>")
    with pytest.raises(LikesError, match="has none of the watched-history and ratings files"):
        read_export(tmp_path / "a.zip", "me", AT, None)
