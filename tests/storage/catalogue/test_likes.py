"""Stored likes: idempotent, with hashes instead of names, and deleted by `forget`."""

import datetime
import hashlib
import shutil
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from filelock import FileLock

from storage.catalogue import likes
from storage.catalogue.likes import (
    LIKES,
    LIKES_FILE,
    SALT_FILE,
    add_likes,
    forget_viewer,
    hash_viewer,
    read_likes,
    set_viewer_zone,
    unchanged_likes,
    viewer_zone,
    viewer_zones,
)
from storage.home.workspace import HomeError, HomeLocked
from storage.home.zones import set_zone
from storage.stages import ROOT

DAY = datetime.datetime(2026, 1, 1)


def row(viewer="Ann", show="tatort", value=1.0, day=0, **more):
    base = {"viewer": viewer, "show_key": show, "title": show.title(), "episode": "", "sub_title": ""}
    about = {"source": "stated", "time": DAY + datetime.timedelta(days=day), "value": value, "seen": False}
    return base | about | more


def table(*rows):
    return pa.Table.from_pylist(list(rows), schema=LIKES)


def opinions(home: Path, viewer: str | None = None) -> dict[str, float]:
    found = read_likes(home, viewer and hash_viewer(home, viewer))[0].to_pylist()
    return {one["show_key"]: round(one["value"], 3) for one in found}


def test_the_same_likes_again_change_nothing(tmp_path):
    rows = table(row(), row("Bob", "news", -1.0), row("Bob", "news", -1.0))
    assert add_likes(tmp_path, rows) == 2
    before = [part.to_pylist() for part in read_likes(tmp_path)]
    assert add_likes(tmp_path, rows) == 0
    assert [part.to_pylist() for part in read_likes(tmp_path)] == before
    assert add_likes(tmp_path, table()) == 0


def test_the_later_opinion_counts_whatever_the_order(tmp_path):
    add_likes(tmp_path, table(row(value=-1.0, day=2), row(value=1.0, day=1)))
    assert opinions(tmp_path) == {"tatort": -1.0}
    add_likes(tmp_path, table(row(value=1.0, day=1)))
    assert opinions(tmp_path) == {"tatort": -1.0}
    add_likes(tmp_path, table(row(value=1.0, day=3)))
    assert opinions(tmp_path) == {"tatort": 1.0}


def test_stated_ratings_replace_those_from_watching(tmp_path):
    watched = {"source": "kodi", "day": 9, "seen": True}
    rows = [row(value=value, episode=f"s1e{n}", **watched) for n, value in enumerate((0.5, -0.1))]
    add_likes(tmp_path, table(*rows))
    assert opinions(tmp_path) == {"tatort": 0.2}
    add_likes(tmp_path, table(row(value=-1.0)))
    assert opinions(tmp_path) == {"tatort": -1.0}
    assert {one["episode"] for one in read_likes(tmp_path)[1].to_pylist()} == {"s1e0", "s1e1"}


def test_seen_titles_stay_seen(tmp_path):
    add_likes(tmp_path, table(row(seen=True)))
    add_likes(tmp_path, table(row(day=1)))
    assert len(read_likes(tmp_path)[1]) == 1


def test_a_value_of_zero_is_no_opinion(tmp_path):
    add_likes(tmp_path, table(row(value=0.0, seen=True)))
    found, seen = read_likes(tmp_path)
    assert len(found) == 0 and len(seen) == 1


def test_names_are_hashed_with_the_salt_of_the_home(tmp_path):
    add_likes(tmp_path, table(row("Zoë")))
    code = hash_viewer(tmp_path, "Zoë")
    assert code == hash_viewer(tmp_path, " Zoe\u0308 ") != hash_viewer(tmp_path, "zoë") and len(code) == 32
    salted = (tmp_path / SALT_FILE).read_text(encoding="utf-8") + "Zoë"
    assert code == hashlib.sha256(salted.encode()).hexdigest()[:32]
    assert read_likes(tmp_path)[0]["viewer"].to_pylist() == [code]
    assert all("Zoë".encode() not in file.read_bytes() for file in tmp_path.iterdir())
    assert stat.S_IMODE((tmp_path / SALT_FILE).stat().st_mode) == 0o600
    (other := tmp_path / "other").mkdir()
    assert hash_viewer(other, "Zoë") != code


def test_nothing_of_a_forgotten_viewer_stays(tmp_path):
    add_likes(tmp_path, table(*(row("Ann", f"only ann saw this {n}") for n in range(50)), row("Bob", "news")))
    code = hash_viewer(tmp_path, "Ann").encode()
    assert code in (tmp_path / LIKES_FILE).read_bytes()
    assert forget_viewer(tmp_path, "Ann") == 50
    traces = code, b"only ann saw this", b"Only Ann Saw"
    assert not any(trace in file.read_bytes() for trace in traces for file in tmp_path.iterdir())
    assert opinions(tmp_path) == {"news": 1.0}
    assert forget_viewer(tmp_path, "Ann") == 0 and forget_viewer(tmp_path, "Nobody") == 0
    assert add_likes(tmp_path, table(row("Ann"))) == 1


FORGET = """
import resource, signal, sys
from storage.catalogue.likes import forget_viewer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
forget_viewer(sys.argv[1], "Ann")
"""


@pytest.mark.parametrize("wall", ["a limit of file sizes", "a full disk"])
def test_no_likes_are_lost_where_the_new_file_cannot_be_written(request, tmp_path, wall):
    """DuckDB's close hides that its checkpoint failed, which leaves the new file empty."""
    home = tmp_path if wall == "a limit of file sizes" else request.getfixturevalue("small_disk")
    add_likes(home, table(row("Ann"), row("Bob", "news")))
    if home == tmp_path:
        command = [sys.executable, "-c", FORGET, str(home)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 1 and "OSError: [Errno 27] File too large" in done.stderr, done.stderr
    else:
        with pytest.raises(OSError, match="No space left"):
            forget_viewer(home, "Ann")
    assert opinions(home) == {"tatort": 1.0, "news": 1.0}
    names = {file.name for file in home.iterdir()}
    assert names <= {
        LIKES_FILE,
        f"{LIKES_FILE}.wal",
        SALT_FILE,
        "likes.lock",
    }  # the log is that of the old file


def test_a_viewer_in_the_log_of_a_killed_process_is_forgotten(tmp_path):
    add_likes(tmp_path, table(row("Bob", "news")))
    viewer = hash_viewer(tmp_path, "Ann")
    code = "import duckdb, os, signal, sys\nconnection = duckdb.connect(sys.argv[1])\n"
    code += "query = 'INSERT INTO likes SELECT * REPLACE (?::VARCHAR AS viewer) FROM likes'\n"
    code += "connection.execute(query, [sys.argv[2]])\n"
    code += "os.kill(os.getpid(), signal.SIGKILL)"
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path / LIKES_FILE), viewer])
    assert killed.returncode == -signal.SIGKILL
    log = tmp_path / f"{LIKES_FILE}.wal"
    assert viewer.encode() in log.read_bytes()
    assert forget_viewer(tmp_path, "Ann") == 1 and not log.exists()
    assert opinions(tmp_path) == {"news": 1.0}
    assert not any(viewer.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_likes_are_unchanged_until_they_change(tmp_path, monkeypatch):
    add_likes(tmp_path, table(row("Ann"), row("Bob", "news")))
    ann, everybody = (read_likes(tmp_path, viewer)[0] for viewer in (hash_viewer(tmp_path, "Ann"), None))
    with unchanged_likes(tmp_path, ann) as unchanged:
        assert unchanged
    forget_viewer(tmp_path, "Bob")
    monkeypatch.setattr(likes, "WAIT_SECONDS", 0.1)
    with unchanged_likes(tmp_path, ann) as unchanged:
        assert unchanged
        with pytest.raises(HomeLocked):
            read_likes(tmp_path)
    with unchanged_likes(tmp_path, everybody) as unchanged:
        assert not unchanged
    forget_viewer(tmp_path, "Ann")
    add_likes(tmp_path, table(row("Ann", day=1)))
    with unchanged_likes(tmp_path, ann) as unchanged:
        assert not unchanged


def test_writers_wait_for_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr(likes, "WAIT_SECONDS", 0.2)
    refusal = pytest.raises(HomeLocked, match=r"likes\.duckdb is being written")
    with FileLock(tmp_path / "likes.lock"), refusal:
        add_likes(tmp_path, table(row()))
    monkeypatch.setattr(likes, "WAIT_SECONDS", 20)
    with ThreadPoolExecutor(4) as executor:
        list(executor.map(lambda n: add_likes(tmp_path, table(row(show=f"s{n}"))), range(4)))
    assert len(opinions(tmp_path)) == 4


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    add_likes(tmp_path, table(row()))
    with duckdb.connect(str(tmp_path / LIKES_FILE)) as connection:
        connection.execute("INSERT INTO migrations VALUES (99, 'later', now())")
    with pytest.raises(HomeError, match="schema version 99"):
        read_likes(tmp_path)


def test_resume_points_of_earlier_versions_are_removed(tmp_path, monkeypatch):
    old = tmp_path / "schema"
    old.mkdir()
    shutil.copy(likes.MIGRATIONS_FOLDER / "0001_likes.sql", old)
    with monkeypatch.context() as patch:
        patch.setattr(likes, "MIGRATIONS_FOLDER", old)
        rows = [
            row(show="paused", source="jellyfin", value=-0.6),
            row(show="nearly", source="kodi", value=0.5),
            row(show="watched", source="kodi", value=0.5, seen=True),
            row(show="rated", value=-0.6),
            row(show="share", source="table: share", value=-0.6),
        ]
        add_likes(tmp_path, table(*rows))
        assert opinions(tmp_path)["paused"] == -0.6
    assert opinions(tmp_path) == {"watched": 0.5, "rated": -0.6}


def test_zones_of_viewers_are_stored_by_hash_and_forgotten(tmp_path):
    set_zone(tmp_path, "Asia/Tokyo")
    assert viewer_zone(tmp_path, "Ann").key == "Asia/Tokyo" and viewer_zones(tmp_path) == {}
    for name, zone in (("Ann", "Europe/Paris"), ("Ann", "Europe/Rome"), ("Bob", "Asia/Kolkata")):
        set_viewer_zone(tmp_path, name, zone)
    assert viewer_zones(tmp_path) == {
        hash_viewer(tmp_path, "Ann"): "Europe/Rome",
        hash_viewer(tmp_path, "Bob"): "Asia/Kolkata",
    }
    assert forget_viewer(tmp_path, "Ann") == 0
    assert viewer_zone(tmp_path, "Ann").key == "Asia/Tokyo"
    assert viewer_zone(tmp_path, "Bob").key == "Asia/Kolkata"


def test_a_viewer_is_forgotten_in_a_file_of_an_older_version(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        migrations = likes.read_migrations(likes.MIGRATIONS_FOLDER)[:2]
        patch.setattr(likes, "read_migrations", lambda folder: migrations)
        add_likes(tmp_path, table(row(), row("Bob")))
    assert forget_viewer(tmp_path, "Ann") == 1 and opinions(tmp_path) == {"tatort": 1.0}
