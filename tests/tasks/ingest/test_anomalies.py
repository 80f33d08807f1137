"""A reading beside the one before it: emptied, shrunk, or over."""

import datetime
import zlib
from pathlib import Path

import pytest
from guides import NOW, guide, read, rows

from storage.catalogue.connection import Catalogue
from tasks.ingest.ingest import ingest_feeds
from tasks.ingest.results import FeedResult
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.dates import DatedFeed
from tasks.ingest.sources.feeds import FeedError

LAST = "in its reading of 2025-03-01"


def anomalies(home: Path, file: Path, content: bytes, **settings: object) -> tuple[str, ...]:
    file.write_bytes(content)
    (outcome,) = read(home, file, **settings)
    return outcome.anomalies


def test_an_emptied_or_shrunken_feed_is_odd_night_after_night(tmp_path: Path) -> None:
    file = tmp_path / "g.xml"
    assert anomalies(tmp_path, file, guide(programmes=10)) == ()
    assert anomalies(tmp_path, file, guide(programmes=5)) == ()
    assert anomalies(tmp_path, file, guide(programmes=2)) == (f"2 programmes, 5 {LAST}",)
    assert anomalies(tmp_path, file, guide(programmes=2)) == (
        f"2 programmes, 5 {LAST}",
    )  # unchanged, and no better
    assert anomalies(tmp_path, file, b"<tv></tv>") == (f"0 programmes, 2 {LAST}",)
    assert anomalies(tmp_path, file, b"<tv> </tv>") == (f"0 programmes, 2 {LAST}",)
    assert anomalies(tmp_path, file, b"<tv> </tv>") == (f"0 programmes, 2 {LAST}",)
    assert anomalies(tmp_path, file, guide(programmes=10)) == ()
    assert anomalies(tmp_path, tmp_path / "new.xml", b"<tv></tv>") == ("0 programmes",)


def test_a_guide_that_is_over_is_odd(tmp_path: Path) -> None:
    yesterday = '<programme channel="one" start="20250228220000" stop="{}"><title>a</title></programme>'
    over = ("the guide ends on 2025-02-28 23:59 UTC, before today",)
    assert anomalies(tmp_path, tmp_path / "g.xml", guide(yesterday.format("20250228235900"))) == over
    assert anomalies(tmp_path, tmp_path / "g.xml", guide(yesterday.format("20250228235900"))) == over
    assert anomalies(tmp_path, tmp_path / "g.xml", guide(yesterday.format("20250301000000"))) == ()
    file = tmp_path / "g-2025-02-01.xml"
    file.write_bytes(guide(yesterday.format("20250228235900")))
    dated = DatedFeed(
        location=str(file), source="s", grabbed_at=datetime.datetime(2025, 2, 1, tzinfo=datetime.UTC)
    )
    for _ in range(2):  # read after the fact, it may end when it likes
        with Catalogue.open(tmp_path) as catalogue:
            events = list(
                ingest_feeds(catalogue, [dated], IngestSettings(), clock=lambda: 0.0, now=lambda: NOW)
            )
        assert [event.anomalies for event in events if isinstance(event, FeedResult)] == [()]


def test_an_odd_reading_of_a_required_source_is_not_stored(tmp_path: Path) -> None:
    file, required = tmp_path / "g.xml", {"required": ("*/g.xml",)}
    assert anomalies(tmp_path, file, guide(programmes=10), **required) == ()
    for _ in range(2):
        with pytest.raises(FeedError, match=rf"g\.xml: 0 programmes, 10 {LAST}\. ingest\.required names it"):
            anomalies(tmp_path, file, b"<tv></tv>", **required)
    assert rows(tmp_path, "SELECT seen FROM feeds") == [(10,)]
    assert anomalies(tmp_path, file, b"<tv></tv>") == (f"0 programmes, 10 {LAST}",)
    with pytest.raises(FeedError, match="0 programmes"):  # unchanged by now
        anomalies(tmp_path, file, b"<tv></tv>", **required)


def test_a_feed_of_which_nothing_can_be_read_fails(tmp_path: Path) -> None:
    """Its compression is damaged behind the first tag."""
    packer = zlib.compressobj(wbits=31)
    readable = packer.compress(guide(programmes=5)[:90]) + packer.flush(zlib.Z_SYNC_FLUSH)
    for damage in (b"", b"\xff" * 100):
        (tmp_path / "g.xml.gz").write_bytes(readable + damage)
        with pytest.raises(
            FeedError,
            match=r"g\.xml\.gz: nothing in it can be read \((damaged|truncated) 1\); fetch it again",
        ):
            read(tmp_path, tmp_path / "g.xml.gz")
    assert rows(tmp_path, "SELECT * FROM feeds") == []
