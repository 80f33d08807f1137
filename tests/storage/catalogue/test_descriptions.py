"""Descriptions of the Guide: whose they are, which, and in what order."""

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from storage.catalogue.connection import Catalogue
from storage.catalogue.ledger import reading
from storage.catalogue.rows import DETAILS, PROGRAMMES
from storage.catalogue.snapshots import DESCRIPTIONS, Choice, snapshot

NOON = datetime.datetime(2025, 3, 1, 12)
HOUR = datetime.timedelta(hours=1)


def day(number: int) -> datetime.datetime:
    return datetime.datetime(2025, 2, number, tzinfo=datetime.UTC)


def read(catalogue: Catalogue, grabbed: int, *said: tuple[str, str | None], source: str = "s") -> None:
    """Reads programmes, an hour each, of (title, description); of one channel."""
    rows = [
        {"channel": "a", "start": NOON + hour * HOUR, "stop": NOON + (hour + 1) * HOUR, "title": title}
        | {"categories": [], "episode_numbers": [], "episode_systems": []}
        for hour, (title, _) in enumerate(said)
    ]
    details = [{"row": row, "description": text} for row, (_, text) in enumerate(said) if text is not None]
    about = {"source": source, "content_digest": repr(said), "size": 1, "read_at": day(28)}
    with reading(catalogue, **about, grabbed_at=day(grabbed)) as draft:
        details = pa.RecordBatch.from_pylist(details, schema=DETAILS)
        draft.add_programmes(pa.RecordBatch.from_pylist(rows, schema=PROGRAMMES), details)
        draft.finish()


def descriptions(catalogue: Catalogue, folder: Path, choice: Choice | None = None) -> list[tuple]:
    folder.mkdir()
    counts = snapshot(catalogue, folder, choice or Choice())
    rows = [tuple(row.values()) for row in pq.read_table(folder / "descriptions.parquet").to_pylist()]
    assert counts["descriptions"] == len(rows)
    return rows


def test_each_title_has_its_distinct_ones_most_airings_first(tmp_path: Path) -> None:
    said = [
        ("b", "rare"),
        ("a", "once"),
        ("b", "often"),
        ("b", "often"),
        ("b", "early"),
        ("c", None),
        ("c", ""),
    ]
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, *said)
        found = descriptions(catalogue, tmp_path / "guide")
    assert found == [("a", "once", 1), ("b", "often", 2), ("b", "early", 1), ("b", "rare", 1)]


def test_a_title_has_few(tmp_path: Path) -> None:
    said = [("news", f"text {number:02}") for number in range(20)] + [("news", "text 19")]
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, *said)
        found = descriptions(catalogue, tmp_path / "guide")
    assert [text for _, text, _ in found] == ["text 19", *(f"text {n:02}" for n in range(DESCRIPTIONS - 1))]


def test_they_are_as_known_at_the_instant(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, ("x", "first words"))
        read(catalogue, 2, ("x", "other words"))
        assert descriptions(catalogue, tmp_path / "now") == [("x", "other words", 1)]
        then = descriptions(catalogue, tmp_path / "then", Choice(as_of=day(1)))
    assert then == [("x", "first words", 1)]


def test_a_source_that_is_not_heard_says_nothing(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, ("x", "of the first"))
        read(catalogue, 2, ("x", "of the second"), ("y", "later"), source="t")
        heard = descriptions(catalogue, tmp_path / "all")
        other = descriptions(catalogue, tmp_path / "other", Choice(priority=("t",)))
        without = descriptions(catalogue, tmp_path / "without", Choice(leave_out=("s",)))
    assert heard == [("x", "of the first", 1), ("y", "later", 1)]
    assert other == without == [("x", "of the second", 1), ("y", "later", 1)]
