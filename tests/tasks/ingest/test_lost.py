"""Catalogues that DuckDB 2.0.0 wrote, and what it lost in them."""

import gzip
import hashlib
from pathlib import Path

import pytest
from guides import guide, read

from flows.cli.doctor import examine
from storage.catalogue.connection import FILE, Catalogue
from storage.catalogue.feeds import load_validators, publish_status, read_status, store_validators
from storage.home.workspace import HomeError, Workspace

MADE_BY_2 = Path(__file__).with_name(
    "made_by_duckdb_2.duckdb.gz"
)  # by 2.0.0: CREATE TABLE migrations (version INTEGER)


def test_a_catalogue_of_a_newer_duckdb_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(gzip.decompress(MADE_BY_2.read_bytes()))
    before = (tmp_path / FILE).read_bytes()
    with (
        pytest.raises(
            HomeError, match=r"catalogue\.duckdb was written by a newer DuckDB than 1\..*docs/catalogue\.md"
        ),
        Catalogue.open(tmp_path),
    ):
        pass
    assert (tmp_path / FILE).read_bytes() == before
    page = Path(__file__).resolve().parents[3] / "docs" / "catalogue.md"
    assert "## A catalogue of DuckDB 2" in page.read_text(encoding="utf-8")


def test_a_reading_that_was_lost_is_named_and_read_again(tmp_path: Path) -> None:
    home = Workspace(tmp_path / "home").home
    file = tmp_path / "g.xml"
    file.write_bytes(guide(programmes=2))
    read(home, file)
    file.write_bytes(guide(programmes=5))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    with Catalogue.open(home) as catalogue:  # the row that 2.0.0 left: all duplicates, and no window
        catalogue.connection.execute(
            "INSERT INTO feeds VALUES (2, ?, ?, 9, TIMESTAMP '2025-03-01 04:00', TIMESTAMP "
            "'2025-03-01 04:00', 5, 0, 5, 0, '', 0)",
            [str(file), digest],
        )
        store_validators(catalogue, str(file), "etag", None)
        assert load_validators(catalogue, str(file)) == (None, None)
        publish_status(catalogue)
    assert [feed["lost"] for feed in read_status(home)["feeds"]] == [False, True]  # type: ignore[attr-defined]
    assert [
        finding
        for finding in examine(home)
        if finding.state == "bad" and "DuckDB 2.0.0 lost" in finding.text and str(file) in finding.text
    ]
    (outcome,) = read(home, file)
    assert not outcome.unchanged and (outcome.counts.stored, outcome.counts.duplicates) == (3, 2)
    (outcome,) = read(home, file)
    assert outcome.unchanged
    feeds = read_status(home)["feeds"]
    assert [feed["lost"] for feed in feeds] == [False, False, False]  # type: ignore[attr-defined]
    assert not [finding for finding in examine(home) if "DuckDB 2.0.0 lost" in finding.text]
    with Catalogue.open(home) as catalogue:
        assert load_validators(catalogue, str(file)) == ("etag", None)


def test_a_reading_of_repeats_alone_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "g.xml").write_bytes(guide(programmes=2))
    read(tmp_path, tmp_path / "g.xml")
    (tmp_path / "g.xml").write_bytes(guide(programmes=1))
    assert read(tmp_path, tmp_path / "g.xml")[0].counts.duplicates == 1
    assert not any(feed["lost"] for feed in read_status(tmp_path)["feeds"])  # type: ignore[attr-defined]
