"""Likes from CSV, Parquet and JSON."""

import datetime
import json
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.likes import LIKES
from tasks.likes.tables import LikesError, read_likes_table

AT, UTC = datetime.datetime(2026, 1, 1, 12), datetime.UTC
ROWS = [
    {"viewer": "Ann", "title": "Tatort: Borowski", "time": "2025-12-31T23:00:00+01:00", "liked": True},
    {"viewer": "", "title": "MasterChef S2 E4", "time": "", "liked": False},
]


def write(path, rows):
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    else:
        lines = [";".join(rows[0]), *(";".join(map(str, row.values())) for row in rows)]
        path.write_text("\ufeff" + "\r\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "json", "jsonl"])
def test_all_formats_give_equal_likes(tmp_path, kind):
    found = read_likes_table(write(tmp_path / f"likes.{kind}", ROWS), "me", AT, UTC)
    assert found.schema == LIKES
    first, second = found.to_pylist()
    assert first == {
        "viewer": "Ann",
        "show_key": "tatort borowski",
        "episode": "",
        "sub_title": "",
        "source": "stated",
        "title": "Tatort: Borowski",
        "time": datetime.datetime(2025, 12, 31, 22),
        "value": 1.0,
        "seen": False,
    }
    about = [second[name] for name in ("viewer", "show_key", "episode", "time", "value")]
    assert about == ["me", "masterchef", "s2e4", AT, -1.0]


@pytest.mark.parametrize(
    ("column", "given", "values", "seen"),
    [
        ("rating", ["1", "3", "5", ""], [-1.0, 0.0, 1.0], [False] * 3),
        ("rating", ["0.5", "10"], [-1.0, 1.0], [False] * 2),
        ("Rating", ["0", "50", "100"], [-1.0, 0.0, 1.0], [False] * 3),
        ("share", ["0", "0.5", "0.95"], [0.0, 0.0, 0.9], [False, False, True]),
        ("share_watched", ["5 %", "79", "80"], [0.0, 0.58, 0.6], [False, False, True]),
    ],
)
def test_ratings_and_shares_are_scaled(tmp_path, column, given, values, seen):
    rows = [{"Programme": f"Show {n}", column: value} for n, value in enumerate(given)]
    found = read_likes_table(write(tmp_path / "likes.csv", rows), "me", AT, UTC).to_pylist()
    assert [round(row["value"], 4) for row in found] == values
    assert [row["seen"] for row in found] == seen


def test_time_in_seconds_and_as_a_date(tmp_path):
    rows = [{"title": "A", "liked": 1, "time": 1767225600}, {"title": "B", "liked": 0, "time": 1767225600.5}]
    found = read_likes_table(write(tmp_path / "a.json", rows), "me", AT, UTC)
    assert found["time"].to_pylist()[0] == datetime.datetime(2026, 1, 1)
    rows = [{"title": "A", "liked": 1, "time": datetime.date(2026, 1, 2)}]
    found = read_likes_table(write(tmp_path / "a.parquet", rows), "me", AT, UTC)
    assert found["time"].to_pylist() == [datetime.datetime(2026, 1, 2)]
    (tmp_path / "a.csv").write_text("title,liked,time\nA,1,20260102\n", encoding="utf-8")
    found = read_likes_table(tmp_path / "a.csv", "me", AT, UTC)
    assert found["time"].to_pylist() == [datetime.datetime(2026, 1, 2)]


def test_times_without_a_zone_are_read_in_the_zone_of_the_viewer(tmp_path):
    rows = [{"title": "A", "liked": 1, "time": "2026-01-01T20:00"}]
    rows += [{"title": "B", "liked": 1, "time": "2026-01-01T20:00+00:00"}]
    found = read_likes_table(write(tmp_path / "a.json", rows), "me", AT, ZoneInfo("Europe/Berlin"))
    assert [row["time"].hour for row in found.to_pylist()] == [19, 20]


def test_rows_of_one_file_may_have_different_columns(tmp_path):
    rows = [{"title": "A", "liked": True}, {"title": "B", "rating": 1, "viewer": "Bob", "time": "2020-01-01"}]
    first, second = read_likes_table(write(tmp_path / "a.jsonl", rows), "me", AT, UTC).to_pylist()
    assert [first[name] for name in ("viewer", "source", "value", "time")] == ["me", "stated", 1, AT]
    expected = ["Bob", "table: rating", -1, datetime.datetime(2020, 1, 1)]
    assert [second[name] for name in ("viewer", "source", "value", "time")] == expected


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_title_with_a_line_separator_stays_one_row(tmp_path, kind):
    title = "Tat\u2028ort\x85"
    text = f'title,liked\n"{title}",1\n' if kind == "csv" else f'{{"title": "{title}", "liked": 1}}\r\n'
    (tmp_path / f"a.{kind}").write_text(text, encoding="utf-8", newline="")
    assert len(read_likes_table(tmp_path / f"a.{kind}", "me", AT, UTC)) == 1


def test_no_rows_are_no_likes(tmp_path):
    (tmp_path / "a.json").write_text("[]", encoding="utf-8")
    (tmp_path / "a.csv").write_text("title,liked\n", encoding="utf-8")
    for name in ("a.json", "a.csv"):
        assert len(read_likes_table(tmp_path / name, "me", AT, UTC)) == 0


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "title,stars\nTatort,3\n", "the columns are title, stars; expected title"),
        ("a.csv", "liked\n1\n", "expected title"),
        ("a.csv", "title,liked\nTatort,maybe\n", "row 1: liked is 'maybe'; expected true"),
        ("a.csv", "title,liked\nTatort,1\n,1\n", "row 2: the title is empty"),
        ("a.csv", "title,rating\nTatort,three\n", "row 1: rating is 'three'; expected a number"),
        ("a.csv", "title,rating\nTatort,nan\n", "rating is 'nan'"),
        (
            "a.csv",
            "title,rating\nTatort,1000\n",
            "rating goes from 1000 to 1000; expected numbers from 0 to 100",
        ),
        ("a.csv", "title,share\nTatort,-0.5\nB,1\n", "share goes from -0.5"),
        ("a.csv", "title,liked,time\nTatort,1,yesterday\n", "time is 'yesterday'; expected an ISO date"),
        ("a.json", "{", "cannot be read as json"),
        ("a.json", '["Tatort"]', "expected objects"),
        ("a.parquet", "not parquet", "cannot be read as parquet"),
        ("a.xlsx", "", r"expected \.csv, \.parquet, \.json"),
    ],
)
def test_invalid_tables_are_refused(tmp_path, name, text, words):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(LikesError, match=words):
        read_likes_table(tmp_path / name, "me", AT, UTC)
