import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.connection import Catalogue
from storage.catalogue.episode_columns import EPISODE_COLUMNS
from storage.catalogue.evening import DETAIL_TYPES
from storage.catalogue.feeds import Counts, count_contents
from storage.catalogue.ledger import LedgerError, feed_writer
from storage.catalogue.rows import REJECTS
from storage.catalogue.snapshots import SnapshotOptions, snapshot_digest, write_snapshot
from tests.storage.catalogue.stored import READ_AT, programmes, store


def test_the_first_duplicate_is_stored_for_any_batches(tmp_path: Path) -> None:
    places = ("b", 1, "first"), ("a", 1, "other channel"), ("b", 1, "second"), ("b", 2, "other hour")
    rows = [(channel, hour, "x", category) for channel, hour, category in places]
    with Catalogue.open(tmp_path) as catalogue:
        counts = store(catalogue, "s", "1", programmes(*rows[:1]), programmes(*rows[1:]), rejects=2)
        assert counts == Counts(seen=6, stored=3, duplicates=1, rejected=2)
        again = store(catalogue, "s", "2", programmes(("b", 1, "x", "first"), ("b", 3, "x", "new")))
        assert again == Counts(seen=2, stored=1, duplicates=1, rejected=0)
        assert store(catalogue, "t", "1", programmes(*rows)).stored == 3  # another source
        ask = catalogue.connection.execute
        query = "SELECT feed_id, channel, categories[1] FROM programmes WHERE source = 's' ORDER BY ALL"
        expected = [(1, "a", "other channel"), (1, "b", "first"), (1, "b", "other hour"), (2, "b", "new")]
        assert ask(query).fetchall() == expected
        query = "SELECT channel, name FROM channels WHERE source = 's' ORDER BY channel"
        assert ask(query).fetchall() == [("a", "a"), ("b", "B of 2")]
        read_at = datetime.datetime(2025, 3, 2, 4, 0)
        assert ask("SELECT DISTINCT read_at FROM feeds").fetchall() == [(read_at,)]


def test_duplicates_in_a_large_feed(tmp_path: Path) -> None:
    rows = [("c", i % 5000, "x", str(i)) for i in range(20_000)]
    with Catalogue.open(tmp_path) as catalogue:
        assert store(catalogue, "s", "1", programmes(*rows[:7000]), programmes(*rows[7000:])).stored == 5000
        query = "SELECT max(categories[1]::INTEGER) FROM programmes"
        assert catalogue.connection.execute(query).fetchall() == [(4999,)]


def test_a_failed_reading_is_rolled_back(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        store(catalogue, "s", "1", programmes(("a", 1, "x", "c")), rejects=1)
        before = count_contents(catalogue)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            with feed_writer(catalogue, source="s", content_digest="2", size=1, read_at=READ_AT) as draft:
                draft.add_programmes(programmes(("z", 9, "z", "z")))
                draft.finish()
                raise ZeroDivisionError
        assert count_contents(catalogue) == before
        query = "SELECT name FROM channels WHERE channel = 'b'"
        assert catalogue.connection.execute(query).fetchall() == [("B of 1",)]
        assert store(catalogue, "s", "2", programmes(("z", 9, "z", "z"))).stored == 1


@pytest.mark.parametrize(
    ("known", "table"), [(False, "programmes"), (True, "staged_programmes"), (False, "rejects")]
)
def test_inconsistent_counts_are_not_committed(tmp_path: Path, known: bool, table: str) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        if known:
            store(catalogue, "s", "1", programmes(("a", 1, "x", "c")))
        before = count_contents(catalogue)
        rejects = pa.RecordBatch.from_pylist([{"line": 1, "reason": "", "excerpt": ""}], schema=REJECTS)
        message = r"s: 3 programmes were seen, but . stored \+ 0 duplicates \+ . rejected are 2\."
        with (  # noqa: PT012
            pytest.raises(LedgerError, match=message),
            feed_writer(catalogue, source="s", content_digest="2", size=1, read_at=READ_AT) as draft,
        ):
            draft.add_programmes(programmes(("z", 9, "z", "z"), ("z", 10, "z", "z")))
            draft.add_rejects(rejects)
            row = f"(SELECT min(rowid) FROM {table})"
            catalogue.connection.execute(f"DELETE FROM {table} WHERE rowid = {row}")
        assert count_contents(catalogue) == before


def test_a_failed_transaction_raises_its_cause(tmp_path: Path) -> None:
    """DuckDB has ended the transaction by then: that there is none to roll back is not the news."""
    with Catalogue.open(tmp_path) as catalogue:
        draft = feed_writer(catalogue, source="s", content_digest="2", size=1, read_at=READ_AT)
        with pytest.raises(ZeroDivisionError), draft:  # noqa: PT012
            catalogue.connection.rollback()
            raise ZeroDivisionError
        assert store(catalogue, "s", "2", programmes(("z", 9, "z", "z"))).stored == 1


def test_snapshot(tmp_path: Path) -> None:
    source, other = "/a/one.xml", "/b/two.xml"
    with Catalogue.open(tmp_path) as catalogue:
        rows = programmes(("b", 2, "y", "c"), ("a", 3, "x", "c"), ("b", 1, "z", "c"))
        store(catalogue, other, "1", rows)
        store(catalogue, source, "2", programmes(("a", 1, "x", "c")), rejects=1)
        digest = snapshot_digest(catalogue)
        first, second = tmp_path / "first", tmp_path / "second's"
        for folder in (first, second):
            folder.mkdir()
            made = write_snapshot(catalogue, folder)
            assert made == {"programmes": 4, "channels": 4, "feeds": 2, "descriptions": 0}
        for name in ("programmes.parquet", "channels.parquet"):
            assert (first / name).read_bytes() == (second / name).read_bytes()
        assert snapshot_digest(catalogue) == digest

        leave_out = SnapshotOptions(leave_out=["/b/*"])
        made = write_snapshot(catalogue, second, leave_out)
        assert made == {"programmes": 1, "channels": 2, "feeds": 1, "descriptions": 0}
        assert snapshot_digest(catalogue, leave_out) != digest
        store(catalogue, source, "3", programmes(("a", 2, "x", "c")))
        assert snapshot_digest(catalogue) != digest

    table = pq.read_table(first / "programmes.parquet")
    names = (
        "source channel start stop title title_language sub_title categories episode_numbers episode_systems"
    )
    facts = ["credits", "countries", "keywords", "original_language", "length_minutes", "icon"]
    assert table.schema.names == [*names.split(), *EPISODE_COLUMNS, "date", "zone", *DETAIL_TYPES, *facts]
    types = [str(table.schema.field(name).type) for name in ("start", "stop", "title", "categories")]
    assert types == ["timestamp[us]", "timestamp[us]", "string", "list<element: string>"]
    rows = [tuple(row.values()) for row in table.select(["source", "channel", "title"]).to_pylist()]
    assert rows == [(source, "a", "x"), (other, "a", "x"), (other, "b", "z"), (other, "b", "y")]
    counts = {"seen": 2, "stored": 1, "duplicates": 0, "rejected": 1}
    feeds = pq.read_table(first / "feeds.parquet").to_pylist()
    assert feeds[1] == {"source": source, "content_digest": "2", **counts}


def test_digest_does_not_depend_on_the_home(tmp_path: Path) -> None:
    digests = set()
    for name in "xy":
        (tmp_path / name).mkdir()
        with Catalogue.open(tmp_path / name) as catalogue:
            store(catalogue, "s", "1", programmes(("a", 1, "x", "c")))
            digests.add(snapshot_digest(catalogue))
    assert len(digests) == 1
