"""Descriptions of the Guide: selection and order."""

from pathlib import Path

import pyarrow.parquet as pq

from storage.catalogue.connection import Catalogue
from storage.catalogue.snapshots import MAX_DESCRIPTIONS, SnapshotOptions, write_snapshot
from tests.storage.catalogue.stored import airing, day, read_rows


def read(catalogue: Catalogue, grabbed: int, *rows: tuple[str, str | None], source: str = "s") -> None:
    """Reads (title, description) pairs as programmes of an hour each on one channel."""
    texts = {row: text for row, (_, text) in enumerate(rows) if text is not None}
    airings = [airing("a", hour, title) for hour, (title, _) in enumerate(rows)]
    read_rows(catalogue, grabbed, airings, source, texts)


def descriptions(catalogue: Catalogue, folder: Path, choice: SnapshotOptions | None = None) -> list[tuple]:
    folder.mkdir()
    counts = write_snapshot(catalogue, folder, choice or SnapshotOptions())
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


def test_the_number_of_descriptions_of_a_title_is_limited(tmp_path: Path) -> None:
    said = [("news", f"text {number:02}") for number in range(20)] + [("news", "text 19")]
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, *said)
        found = descriptions(catalogue, tmp_path / "guide")
    assert [text for _, text, _ in found] == [
        "text 19",
        *(f"text {n:02}" for n in range(MAX_DESCRIPTIONS - 1)),
    ]


def test_descriptions_are_those_at_the_instant(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, ("x", "first words"))
        read(catalogue, 2, ("x", "other words"))
        assert descriptions(catalogue, tmp_path / "now") == [("x", "other words", 1)]
        then = descriptions(catalogue, tmp_path / "then", SnapshotOptions(as_of=day(1)))
    assert then == [("x", "first words", 1)]


def test_only_descriptions_of_the_chosen_source_are_used(tmp_path: Path) -> None:
    with Catalogue.open(tmp_path) as catalogue:
        read(catalogue, 1, ("x", "of the first"))
        read(catalogue, 2, ("x", "of the second"), ("y", "later"), source="t")
        heard = descriptions(catalogue, tmp_path / "all")
        other = descriptions(catalogue, tmp_path / "other", SnapshotOptions(priority=("t",)))
        without = descriptions(catalogue, tmp_path / "without", SnapshotOptions(leave_out=("s",)))
    assert heard == [("x", "of the first", 1), ("y", "later", 1)]
    assert other == without == [("x", "of the second", 1), ("y", "later", 1)]
