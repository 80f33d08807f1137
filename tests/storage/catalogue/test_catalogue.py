import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.connection import Catalogue
from storage.catalogue.episode_columns import COLUMNS
from storage.catalogue.feeds import Counts, describe, find_unchanged
from storage.catalogue.ledger import LedgerError, reading
from storage.catalogue.rows import REJECTS
from storage.catalogue.snapshots import Choice, snapshot, snapshot_digest
from tests.storage.catalogue.stored import READ_AT, programmes, store


def test_first_of_the_doubles_is_kept_whatever_the_batches(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        rows = [
            ("b", 1, "x", "first"),
            ("a", 1, "x", "other channel"),
            ("b", 1, "x", "second"),
            ("b", 2, "x", "other hour"),
        ]
        counts = store(catalogue, "s", "1", programmes(*rows[:1]), programmes(*rows[1:]), rejects=2)
        assert counts == Counts(seen=6, stored=3, duplicates=1, rejected=2)
        assert store(catalogue, "s", "2", programmes(("b", 1, "x", "first"), ("b", 3, "x", "new"))) == Counts(
            seen=2, stored=1, duplicates=1, rejected=0
        )
        assert store(catalogue, "t", "1", programmes(*rows)).stored == 3  # another source
        found = catalogue.connection.execute(
            "SELECT feed_id, channel, categories[1] FROM programmes WHERE source = 's' ORDER BY ALL"
        ).fetchall()
        assert found == [
            (1, "a", "other channel"),
            (1, "b", "first"),
            (1, "b", "other hour"),
            (2, "b", "new"),
        ]
        assert catalogue.connection.execute(
            "SELECT source, channel, name FROM channels WHERE source = 's' ORDER BY channel"
        ).fetchall() == [("s", "a", "a"), ("s", "b", "B of 2")]
        assert catalogue.connection.execute("SELECT DISTINCT read_at FROM feeds").fetchall() == [
            (datetime.datetime(2025, 3, 2, 4, 0),)
        ]


def test_doubles_in_a_large_feed(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        rows = [("c", i % 5000, "x", str(i)) for i in range(20_000)]
        assert store(catalogue, "s", "1", programmes(*rows[:7000]), programmes(*rows[7000:])).stored == 5000
        assert catalogue.connection.execute(
            "SELECT max(categories[1]::INTEGER) FROM programmes"
        ).fetchall() == [(4999,)]


def test_a_reading_that_raises_leaves_no_trace(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        store(catalogue, "s", "1", programmes(("a", 1, "x", "c")), rejects=1)
        before = describe(catalogue)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            with reading(catalogue, source="s", content_digest="2", size=1, read_at=READ_AT) as draft:
                draft.add_programmes(programmes(("z", 9, "z", "z")))
                draft.finish()
                raise ZeroDivisionError
        assert describe(catalogue) == before
        assert catalogue.connection.execute("SELECT name FROM channels WHERE channel = 'b'").fetchall() == [
            ("B of 1",)
        ]
        assert (
            store(catalogue, "s", "2", programmes(("z", 9, "z", "z"))).stored == 1
        )  # and the next one finds all in order


@pytest.mark.parametrize(
    ("known", "table"), [(False, "programmes"), (True, "staged_programmes"), (False, "rejects")]
)
def test_a_ledger_that_does_not_add_up_is_not_committed(tmp_path: Path, known: bool, table: str) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        if known:
            store(catalogue, "s", "1", programmes(("a", 1, "x", "c")))
        before = describe(catalogue)
        rejects = pa.RecordBatch.from_pylist(
            [{"line": 1, "reason": "bad_start", "excerpt": "<p>"}], schema=REJECTS
        )
        with (  # noqa: PT012
            pytest.raises(
                LedgerError,
                match=r"s: 3 programmes were seen, but . stored \+ 0 duplicates \+ . rejected are 2\.",
            ),
            reading(catalogue, source="s", content_digest="2", size=1, read_at=READ_AT) as draft,
        ):
            draft.add_programmes(programmes(("z", 9, "z", "z"), ("z", 10, "z", "z")))
            draft.add_rejects(rejects)
            catalogue.connection.execute(
                f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table})"
            )
        assert describe(catalogue) == before


def test_a_commit_that_fails_says_why(tmp_path: Path) -> None:
    """DuckDB has ended the transaction by then: that there is none to roll back is not the news."""
    with Catalogue.open(tmp_path) as catalogue:
        draft = reading(catalogue, source="s", content_digest="2", size=1, read_at=READ_AT)
        with pytest.raises(ZeroDivisionError), draft:  # noqa: PT012
            catalogue.connection.rollback()
            raise ZeroDivisionError
        assert store(catalogue, "s", "2", programmes(("z", 9, "z", "z"))).stored == 1


def test_the_ledger_remembers_bytes_by_source(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        counts = store(catalogue, "s", "1", programmes(("a", 1, "x", "c")))
        assert find_unchanged(catalogue, "s", "1") == counts
        assert find_unchanged(catalogue, "s", "2") is None and find_unchanged(catalogue, "t", "1") is None


def test_snapshot(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        store(
            catalogue,
            "/b/two.xml",
            "1",
            programmes(("b", 2, "y", "c"), ("a", 3, "x", "c"), ("b", 1, "z", "c")),
        )
        store(catalogue, "/a/one.xml", "2", programmes(("a", 1, "x", "c")), rejects=1)
        digest = snapshot_digest(catalogue)
        for name in ("first", "second's"):
            (tmp_path / name).mkdir()
            made = snapshot(catalogue, tmp_path / name)
            assert made == {"programmes": 4, "channels": 4, "feeds": 2, "descriptions": 0}
        table = pq.read_table(tmp_path / "first" / "programmes.parquet")
        assert table.schema.names == [
            "source",
            "channel",
            "start",
            "stop",
            "title",
            "title_language",
            "sub_title",
            "categories",
            "episode_numbers",
            "episode_systems",
            *COLUMNS,
            "date",
            "zone",
        ]
        assert [str(table.schema.field(name).type) for name in ("start", "stop", "title", "categories")] == [
            "timestamp[us]",
            "timestamp[us]",
            "string",
            "list<element: string>",
        ]
        assert [(row["source"], row["channel"], row["title"]) for row in table.to_pylist()] == [
            ("/a/one.xml", "a", "x"),
            ("/b/two.xml", "a", "x"),
            ("/b/two.xml", "b", "z"),
            ("/b/two.xml", "b", "y"),
        ]
        assert pq.read_table(tmp_path / "first" / "feeds.parquet").to_pylist()[1] == {
            "source": "/a/one.xml",
            "content_digest": "2",
            "seen": 2,
            "stored": 1,
            "duplicates": 0,
            "rejected": 1,
        }
        assert all(
            (tmp_path / "first" / name).read_bytes() == (tmp_path / "second's" / name).read_bytes()
            for name in ("programmes.parquet", "channels.parquet")
        )
        assert snapshot_digest(catalogue) == digest

        (tmp_path / "part").mkdir()
        assert snapshot(catalogue, tmp_path / "part", Choice(leave_out=["/b/*"])) == {
            "programmes": 1,
            "channels": 2,
            "feeds": 1,
            "descriptions": 0,
        }
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
