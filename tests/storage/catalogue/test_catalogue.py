import datetime
import json
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.connection import Catalogue
from storage.catalogue.ledger import Counts, LedgerError, has_read, reading
from storage.catalogue.rows import CHANNELS, PROGRAMMES, REJECTS
from storage.catalogue.snapshots import Choice, snapshot, snapshot_digest
from storage.catalogue.status import describe, publish_status, status
from storage.workspace import HomeLocked

HOUR = datetime.timedelta(hours=1)
NOON = datetime.datetime(2025, 3, 1, 12)
READ_AT = datetime.datetime(2025, 3, 2, 5, 0, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))


def programmes(*rows: tuple[str, int, str, str]) -> pa.RecordBatch:
    """Of (channel, hour after noon, title, category)."""
    content = [
        {"channel": channel, "start": NOON + hour * HOUR, "stop": NOON + (hour + 1) * HOUR, "title": title, "categories": [category], "episode_numbers": [], "episode_systems": []}
        for channel, hour, title, category in rows
    ]
    return pa.RecordBatch.from_pylist(content, schema=PROGRAMMES)


def store(catalogue: Catalogue, source: str, digest: str, *batches: pa.RecordBatch, rejects: int = 0) -> Counts:
    with reading(catalogue, source=source, content_digest=digest, size=10, read_at=READ_AT) as draft:
        for batch in batches:
            draft.add_programmes(batch)
        draft.add_rejects(pa.RecordBatch.from_pylist([{"line": i, "reason": "bad_start", "excerpt": "<p>"} for i in range(rejects)], schema=REJECTS))
        draft.add_channels(pa.RecordBatch.from_pylist([{"channel": "b", "name": name, "names": [name], "urls": []} for name in (f"B of {digest}", "B again")], schema=CHANNELS))
        return draft.settle()


def test_first_of_the_doubles_is_kept_whatever_the_batches(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        rows = [("b", 1, "x", "first"), ("a", 1, "x", "other channel"), ("b", 1, "x", "second"), ("b", 2, "x", "other hour")]
        counts = store(catalogue, "s", "1", programmes(*rows[:1]), programmes(*rows[1:]), rejects=2)
        assert counts == Counts(seen=6, stored=3, duplicates=1, rejected=2)
        assert store(catalogue, "s", "2", programmes(("b", 1, "x", "first"), ("b", 3, "x", "new"))) == Counts(seen=2, stored=1, duplicates=1, rejected=0)
        assert store(catalogue, "t", "1", programmes(*rows)).stored == 3  # another source
        found = catalogue.connection.execute("SELECT feed_id, channel, categories[1] FROM programmes WHERE source = 's' ORDER BY ALL").fetchall()
        assert found == [(1, "a", "other channel"), (1, "b", "first"), (1, "b", "other hour"), (2, "b", "new")]
        assert catalogue.connection.execute("SELECT source, channel, name FROM channels WHERE source = 's' ORDER BY channel").fetchall() == [("s", "a", "a"), ("s", "b", "B of 2")]
        assert catalogue.connection.execute("SELECT DISTINCT read_at FROM feeds").fetchall() == [(datetime.datetime(2025, 3, 2, 4, 0),)]


def test_doubles_in_a_large_feed(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        rows = [("c", i % 5000, "x", str(i)) for i in range(20_000)]
        assert store(catalogue, "s", "1", programmes(*rows[:7000]), programmes(*rows[7000:])).stored == 5000
        assert catalogue.connection.execute("SELECT max(categories[1]::INTEGER) FROM programmes").fetchall() == [(4999,)]


def test_a_reading_that_raises_leaves_no_trace(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        store(catalogue, "s", "1", programmes(("a", 1, "x", "c")), rejects=1)
        before = describe(catalogue)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            with reading(catalogue, source="s", content_digest="2", size=1, read_at=READ_AT) as draft:
                draft.add_programmes(programmes(("z", 9, "z", "z")))
                draft.settle()
                raise ZeroDivisionError
        assert describe(catalogue) == before
        assert catalogue.connection.execute("SELECT name FROM channels WHERE channel = 'b'").fetchall() == [("B of 1",)]
        assert store(catalogue, "s", "2", programmes(("z", 9, "z", "z"))).stored == 1  # and the next one finds all in order


@pytest.mark.parametrize(("known", "table"), [(False, "programmes"), (True, "staged_programmes"), (False, "rejects")])
def test_a_ledger_that_does_not_add_up_is_not_committed(tmp_path: Path, known: bool, table: str) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        if known:
            store(catalogue, "s", "1", programmes(("a", 1, "x", "c")))
        before = describe(catalogue)
        rejects = pa.RecordBatch.from_pylist([{"line": 1, "reason": "bad_start", "excerpt": "<p>"}], schema=REJECTS)
        with (  # noqa: PT012
            pytest.raises(LedgerError, match=r"s: 3 programmes were seen, but . stored \+ 0 duplicates \+ . rejected are 2: DuckDB .* has lost rows"),
            reading(catalogue, source="s", content_digest="2", size=1, read_at=READ_AT) as draft,
        ):
            draft.add_programmes(programmes(("z", 9, "z", "z"), ("z", 10, "z", "z")))
            draft.add_rejects(rejects)
            catalogue.connection.execute(f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table})")
        assert describe(catalogue) == before


def test_a_commit_that_fails_says_why(tmp_path: Path) -> None:
    """DuckDB has ended the transaction by then: that there is none to roll back is not the news."""
    with Catalogue.open(tmp_path) as catalogue:
        with pytest.raises(ZeroDivisionError), reading(catalogue, source="s", content_digest="2", size=1, read_at=READ_AT):  # noqa: PT012
            catalogue.connection.rollback()
            raise ZeroDivisionError
        assert store(catalogue, "s", "2", programmes(("z", 9, "z", "z"))).stored == 1


def test_the_ledger_remembers_bytes_by_source(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        counts = store(catalogue, "s", "1", programmes(("a", 1, "x", "c")))
        assert has_read(catalogue, "s", "1") == counts
        assert has_read(catalogue, "s", "2") is None and has_read(catalogue, "t", "1") is None


def test_snapshot(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        store(catalogue, "/b/two.xml", "1", programmes(("b", 2, "y", "c"), ("a", 3, "x", "c"), ("b", 1, "z", "c")))
        store(catalogue, "/a/one.xml", "2", programmes(("a", 1, "x", "c")), rejects=1)
        digest = snapshot_digest(catalogue)
        for name in ("first", "second's"):
            (tmp_path / name).mkdir()
            assert snapshot(catalogue, tmp_path / name) == {"programmes": 4, "channels": 4, "feeds": 2}
        table = pq.read_table(tmp_path / "first" / "programmes.parquet")
        assert table.schema.names == ["source", "channel", "start", "stop", "title", "title_language", "sub_title", "categories", "episode_numbers", "date"]
        assert [str(table.schema.field(name).type) for name in ("start", "stop", "title", "categories")] == ["timestamp[us]", "timestamp[us]", "string", "list<element: string>"]
        assert [(row["source"], row["channel"], row["title"]) for row in table.to_pylist()] == [
            ("/a/one.xml", "a", "x"),
            ("/b/two.xml", "a", "x"),
            ("/b/two.xml", "b", "z"),
            ("/b/two.xml", "b", "y"),
        ]
        assert pq.read_table(tmp_path / "first" / "feeds.parquet").to_pylist()[1] == {
            "source": "/a/one.xml", "content_digest": "2", "seen": 2, "stored": 1, "duplicates": 0, "rejected": 1
        }  # fmt: skip
        assert all((tmp_path / "first" / name).read_bytes() == (tmp_path / "second's" / name).read_bytes() for name in ("programmes.parquet", "channels.parquet"))
        assert snapshot_digest(catalogue) == digest

        (tmp_path / "part").mkdir()
        assert snapshot(catalogue, tmp_path / "part", Choice(leave_out=["/b/*"])) == {"programmes": 1, "channels": 2, "feeds": 1}
        assert snapshot_digest(catalogue, Choice(leave_out=["/b/*"])) != digest
        store(catalogue, "/a/one.xml", "3", programmes(("a", 2, "x", "c")))
        assert snapshot_digest(catalogue) != digest


def test_digest_does_not_depend_on_the_home(tmp_path: Path) -> None:
    digests = set()
    for name in "xy":
        (tmp_path / name).mkdir()
        with Catalogue.open(tmp_path / name) as catalogue:
            store(catalogue, "s", "1", programmes(("a", 1, "x", "c")))
            digests.add(snapshot_digest(catalogue))
    assert len(digests) == 1


def test_status_is_the_documented_form_and_needs_no_lock(tmp_path: Path) -> None:
    assert status(tmp_path) == {"feeds": [], "channels": 0, "programmes": 0, "titles": 0, "categories": 0}
    with Catalogue.open(tmp_path) as catalogue:
        store(catalogue, "s", "1", programmes(("a", 1, "x", "c"), ("a", 2, "x", "d"), ("a", 2, "x", "d")), rejects=2)
        publish_status(catalogue)
        code = "import sys, json; from pathlib import Path; from storage.catalogue.status import status; print(json.dumps(status(Path(sys.argv[1]))))"
        seen = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True).stdout  # while we hold the database
    assert json.loads(seen) == status(tmp_path) == {
        "feeds": [{"source": "s", "seen": 5, "stored": 2, "duplicates": 1, "rejected": 2, "rejects": {"bad_start": 2}, "lost": False}],
        "channels": 2, "programmes": 2, "titles": 1, "categories": 2,
    }  # fmt: skip


def test_a_database_held_by_another_process_names_it(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from storage.catalogue.connection import Catalogue\n"
    code += "with Catalogue.open(Path(sys.argv[1])): print('open', flush=True); sys.stdin.read()"
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(HomeLocked, match=f"catalogue.duckdb is held by process {holder.pid} "), Catalogue.open(tmp_path):
            pass
    finally:
        assert holder.stdin is not None
        holder.stdin.close()
        holder.wait(timeout=10)
    with Catalogue.open(tmp_path):
        pass


def test_what_a_killed_process_put_aside_is_removed(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path):
        pass
    left = tmp_path / "catalogue.duckdb.tmp" / "duckdb_temp_storage_DEFAULT-0.tmp"
    left.parent.mkdir()
    left.write_bytes(b"x" * 1000)
    with Catalogue.open(tmp_path) as catalogue:
        assert not left.exists()
        catalogue.connection.execute("CREATE TEMP TABLE many AS SELECT hash(range) AS key FROM range(30_000_000)")  # more than it may hold in memory
        assert catalogue.connection.execute("SELECT count(*) FROM many").fetchall() == [(30_000_000,)]
        assert list(left.parent.iterdir())
    assert not left.parent.exists()


def test_readers_see_whole_status_files_only(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        publish_status(catalogue)
        done = threading.Event()
        found: list[dict[str, object]] = []

        def look() -> None:
            while not done.is_set():
                found.append(status(tmp_path))

        reader = threading.Thread(target=look)
        reader.start()
        for i in range(8):
            store(catalogue, "s", str(i), programmes(("a", i, "x", "c")))
            publish_status(catalogue)
        done.set()
        reader.join()
    assert [report["programmes"] for report in found] == sorted(report["programmes"] for report in found)  # type: ignore[type-var]
    assert status(tmp_path)["programmes"] == 8
