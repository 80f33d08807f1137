"""JSON lines: from file to catalogue."""

import datetime
import gzip
import json
import sys
from pathlib import Path
from types import FrameType

import pytest
from guides import read, rows

from tasks.ingest.check import check_feeds
from tasks.ingest.json_lines import _read_lines
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import Feed, FeedError

FIRST = {
    "channel": "one",
    "start": "2025-03-01T10:00:00+01:00",
    "stop": "2025-03-01T10:30:00+01:00",
    "title": "First &amp; last",
    "title_language": "en",
    "sub_title": "Sub",
    "description": "Long\u200b",
    "date": 2024,
    "categories": ["Drama", " ", "Krimi"],
    "episode_numbers": "S1E2",
    "rating": {"value": 5},
}


def lines(*programmes: object) -> bytes:
    return b"".join(
        (each if isinstance(each, str) else json.dumps(each)).encode() + b"\n" for each in programmes
    )


def sound(number: int) -> dict[str, object]:
    return {"channel": "two", "start": f"2025-03-02T{number:02d}:00", "title": f"Show {number}"}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda content: b"\xef\xbb\xbf\n" + content])
def test_a_guide_of_json_lines(tmp_path: Path, pack) -> None:
    file = tmp_path / "guide.dat"
    file.write_bytes(pack(lines(FIRST, sound(1), sound(2))))
    check_feeds([str(file)], IngestSettings())
    (result,) = read(tmp_path, file, zones=("*=Europe/Paris",))
    assert (result.counts.stored, result.reasons) == (3, {})
    nine = datetime.datetime(2025, 3, 1, 9)
    query = (
        "SELECT * EXCLUDE (programme_id, feed_id, replaced_by, source) FROM programmes WHERE channel = 'one'"
    )
    assert rows(tmp_path, query) == [
        (
            *("one", nine, nine + datetime.timedelta(minutes=30), None, "First & last", "en", "Sub"),
            *(["Drama", "Krimi"], ["S1E2"], [None], "2024", '{"rating":{"value":5}}'),
            *(1, None, 2, None, None, None),  # season 1, episode 2
        )
    ]
    assert rows(tmp_path, "SELECT description FROM details") == [("Long",)]
    assert rows(tmp_path, "SELECT element, text FROM originals ORDER BY ALL") == [
        ("description", "Long\u200b"),
        ("title", "First &amp; last"),
    ]
    assert rows(tmp_path, "SELECT hour(start) FROM programmes WHERE title = 'Show 2'") == [(1,)]
    assert read(tmp_path, file, zones=("*=Europe/Paris",))[0].unchanged


@pytest.mark.parametrize("batch_rows", [1, 4, 100])
def test_bad_lines_are_rejected_with_line_and_reason(tmp_path: Path, batch_rows: int) -> None:
    bad = {
        '{"channel": "one", ': "malformed",
        "[1, 2]": "malformed",
        '{"channel": "one", "title": "\\ud800", "start": "2025-03-01"}': "malformed",
        '{"channel": "one", "title": "a", "start": "2025-03-01", "x": NaN}': "malformed",
        "[" * 100_000: "malformed",
        '{"channel": "one", "title": "' + "x" * (5 << 20) + '"}': "oversized",
        '{"title": "a", "start": "2025-03-01"}': "no_channel",
        '{"channel": "one", "title": " ", "start": "2025-03-01"}': "no_title",
        '{"channel": "one", "title": "a", "start": "20250301 soon"}': "bad_start",
        '{"channel": "one", "title": "a", "start": "0001-01-01T00:00+14:00"}': "bad_start",
    }
    content = lines(*map(sound, range(12)), "", *bad) + b'{"channel": "on'
    (tmp_path / "g.jsonl").write_bytes(content)
    (result,) = read(tmp_path, tmp_path / "g.jsonl", max_reject_share=0.5, batch_rows=batch_rows)
    assert (result.counts.seen, result.counts.stored) == (23, 12)
    rejects = rows(tmp_path, "SELECT line, reason, excerpt FROM rejects ORDER BY line")
    expected = [(14 + number, reason) for number, reason in enumerate([*bad.values(), "truncated"])]
    assert [row[:2] for row in rejects] == expected
    assert rejects[0][2] == '{"channel": "one",' and all(len(row[2]) <= 200 for row in rejects)


def test_damaged_compression_is_noted(tmp_path: Path) -> None:
    packed = gzip.compress(lines(*map(sound, range(20))), compresslevel=0)
    (tmp_path / "g.gz").write_bytes(packed[: packed.index(b"Show 15") + 3])
    (result,) = read(tmp_path, tmp_path / "g.gz")
    assert (result.counts.stored, result.reasons) == (15, {"damaged": 1})


def test_carriage_returns_do_not_end_lines(tmp_path: Path) -> None:
    """The number of steps would otherwise grow with the number of carriage returns, each with a copy."""
    first, second = lines(sound(1)), lines(sound(2))
    (tmp_path / "g.jsonl").write_bytes(first + first.replace(b"{", b"{" + b"\r" * 100_000) + second)
    file = tmp_path / "g.jsonl"
    feed = Feed(source="g", file=file, content_digest="", bytes=file.stat().st_size)
    steps, previous = [], sys.gettrace()

    def trace(frame: FrameType, event: str, _: object):
        steps.append(event)
        return trace if frame.f_code is _read_lines.__code__ else None

    sys.settrace(trace)
    try:
        read_lines = list(_read_lines(FeedStream(feed, 1 << 30)))
    finally:
        sys.settrace(previous)
    assert read_lines[0] == first and read_lines[1].count(b"\r") == 100_000 and read_lines[2] == second
    assert len(steps) < 1000


@pytest.mark.parametrize("content", [b'{"programmes": []}', b"{}\n{}\n", b"{" * 1000])
def test_json_that_is_not_a_guide_gives_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "g.json").write_bytes(content)
    with pytest.raises(
        FeedError, match=r"g\.json: not XML and not JSON lines with a channel; it starts with"
    ):
        read(tmp_path, tmp_path / "g.json")
