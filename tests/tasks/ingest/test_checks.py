"""Anomalies of days and of readings."""

import datetime
import zlib
from pathlib import Path

import pytest
from guides import NOW, guide, read, rows

from storage.catalogue.connection import Catalogue
from storage.home.workspace import Workspace
from tasks.ingest.anomalies import check_guide
from tasks.ingest.ingest import ingest_feeds
from tasks.ingest.results import FeedResult
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.dates import DatedFeed
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.task import check, ingest

DAYS = [datetime.date(2025, 3, 1) + datetime.timedelta(days=day) for day in range(9)]
PROGRAMME = (
    '<programme channel="{}" start="{:%Y%m%d}{:02d}0000 +0000" stop="{:%Y%m%d}{:02d}0000 +0000"><title '
    'lang="en">{}</title>{}</programme>'
)


def week(silent: str = "", bare_day: int = -1) -> bytes:
    """Builds nine days of two channels with ten programmes per day, a new title on the fifth day,
    and faults.
    """
    return guide(
        *(
            PROGRAMME.format(
                channel,
                day,
                hour,
                day,
                hour + 1,
                "new" if number == 4 and hour == 0 else f"t{hour}",
                "" if number == bare_day else "<category>c</category>",
            )
            for number, day in enumerate(DAYS)
            for channel in "ab"
            if not (channel == silent and number == 7)
            for hour in range(10)
        )
    )


def checked(tmp_path: Path, content: bytes):
    (tmp_path / "g.xml").write_bytes(content)
    result = ingest.fn(str(tmp_path / "home"), [str(tmp_path / "g.xml")], IngestSettings())
    return result, check_guide(Workspace(tmp_path / "home").folder(result))


def test_a_normal_week_has_no_anomaly(tmp_path: Path) -> None:
    published, result = checked(tmp_path, week())
    assert result.anomalies == []
    assert [
        (day["day"], day["programmes"], day["channels"], day["category_share"], day["gaps"], day["overlaps"])
        for day in result.days
    ][:2] == [
        ("2025-03-01", 20, 2, 1.0, 2, 0),  # from ten in the morning to midnight nothing is on
        ("2025-03-02", 20, 2, 1.0, 2, 0),
    ]
    assert [day["new_titles"] for day in result.days] == [0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert result.days[0]["languages"] == "en 20"
    assert result.metrics["guide/programmes"] == 180 and result.metrics["guide/anomalies"] == 0
    assert (
        len(check.fn(str(tmp_path / "home"), published)) == 1
    )  # the reading's: the guide ended before today


def test_a_silent_channel_is_an_anomaly(tmp_path: Path) -> None:
    _, result = checked(tmp_path, week(silent="b"))
    assert "g.xml 2025-03-08: channel b fell silent" in result.anomalies
    assert [bool(day["anomalies"]) for day in result.days] == [False] * 7 + [True, False]


def test_a_guide_that_ends_in_the_morning_has_no_silent_channel(tmp_path: Path) -> None:
    content = guide(
        *(
            PROGRAMME.format(channel, day, hour, day, hour + 1, f"t{hour}", "<category>c</category>")
            for number, day in enumerate(DAYS)
            for channel in ("a", "b", "c", "evening")
            for hour in range(18 if channel == "evening" else 0, 20)
            if number < 8 or hour < 6
        )
    )
    assert checked(tmp_path, content)[1].anomalies == []


def test_missing_categories_are_an_anomaly(tmp_path: Path) -> None:
    _, result = checked(tmp_path, week(bare_day=6))
    assert result.anomalies == ["g.xml 2025-03-07: category share 0, usually 1"]


def test_an_empty_guide_is_checked(tmp_path: Path) -> None:
    _, result = checked(tmp_path, guide())
    assert result.days == [] and result.anomalies == [] and result.metrics["guide/programmes"] == 0


LAST = "in the reading of 2025-03-01"


def anomalies(home: Path, file: Path, content: bytes, **settings: object) -> tuple[str, ...]:
    file.write_bytes(content)
    (outcome,) = read(home, file, **settings)
    return outcome.anomalies


def test_an_empty_or_smaller_feed_is_an_anomaly(tmp_path: Path) -> None:
    file = tmp_path / "g.xml"
    assert anomalies(tmp_path, file, guide(programmes=10)) == ()
    assert anomalies(tmp_path, file, guide(programmes=5)) == ()
    assert anomalies(tmp_path, file, guide(programmes=2)) == (f"2 programmes (5 {LAST})",)
    assert anomalies(tmp_path, file, guide(programmes=2)) == (f"2 programmes (5 {LAST})",)  # unchanged
    assert anomalies(tmp_path, file, b"<tv></tv>") == (f"0 programmes (2 {LAST})",)
    assert anomalies(tmp_path, file, b"<tv> </tv>") == (f"0 programmes (2 {LAST})",)
    assert anomalies(tmp_path, file, b"<tv> </tv>") == (f"0 programmes (2 {LAST})",)
    assert anomalies(tmp_path, file, guide(programmes=10)) == ()
    assert anomalies(tmp_path, tmp_path / "new.xml", b"<tv></tv>") == ("0 programmes",)


def test_a_guide_that_ends_before_today_is_an_anomaly(tmp_path: Path) -> None:
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
    with Catalogue.open(tmp_path) as catalogue, pytest.raises(ValueError, match="mixed with other feeds"):
        list(
            ingest_feeds(catalogue, [dated, str(file)], IngestSettings(), clock=lambda: 0.0, now=lambda: NOW)
        )


def test_an_anomalous_reading_of_a_required_source_is_not_stored(tmp_path: Path) -> None:
    file, required = tmp_path / "g.xml", {"required": ("*/g.xml",)}
    assert anomalies(tmp_path, file, guide(programmes=10), **required) == ()
    for _ in range(2):
        with pytest.raises(
            FeedError, match=rf"g\.xml: 0 programmes \(10 {LAST}\); the feed is listed in ingest.required"
        ):
            anomalies(tmp_path, file, b"<tv></tv>", **required)
    assert rows(tmp_path, "SELECT seen FROM feeds") == [(10,)]
    assert anomalies(tmp_path, file, b"<tv></tv>") == (f"0 programmes (10 {LAST})",)
    with pytest.raises(FeedError, match="0 programmes"):  # unchanged by now
        anomalies(tmp_path, file, b"<tv></tv>", **required)


def test_an_unreadable_feed_fails(tmp_path: Path) -> None:
    """The compression is damaged after the first tag."""
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
