"""Tokens of the airing context, on each side of the begin of next_period."""

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.catalogue.connection import temporary_database
from tasks.tokenize import contexts
from tasks.tokenize.contexts import write_contexts
from tests.worlds import Programme, publish_guide

EVENING = datetime.datetime(2026, 1, 5, 20, 0)  # a Monday
DAY, HOUR = datetime.timedelta(days=1), datetime.timedelta(hours=1)
KINDS = ("channel", "hour", "weekday", "duration", "manner")


@pytest.fixture
def guide(tmp_path):
    evening, details = EVENING + 5 * DAY, {"source": "a", "language": "de"}
    rows = [
        Programme("Tatort", ("secretcategory",), EVENING, "one.de", **details),
        Programme("Tatort", ("secretcategory",), evening + 3 * HOUR, "two.de", **details),
        Programme("Wetter", (), evening, "two.de", **details),
    ]
    return tmp_path / "home" / publish_guide(tmp_path / "home", rows).path


VARIANTS = pa.table({"raw_title": ["Tatort", "Wetter"], "title_id": pa.array([0, 1], pa.int32())})


def tokens(guide, next_period=(), cut=None, kinds=KINDS):
    found: dict[int, set[str]] = {0: set(), 1: set()}
    variants, path = guide.parent / "variants.parquet", guide.parent / "contexts.parquet"
    pq.write_table(VARIANTS, variants)
    with temporary_database(guide.parent) as connection:
        write_contexts(
            connection,
            guide=guide,
            variants=variants,
            kinds=kinds,
            path=path,
            next_period_ids=next_period,
            next_period_begin=cut,
        )
    for row in pq.read_table(path).to_pylist():
        assert row["token"].startswith(row["kind"] + ":")
        found[row["title_id"]].add(row["token"])
    return found


def test_names_channel_hour_weekday_duration_and_manner(guide):
    found = tokens(guide)
    expected = "channel:one.de channel:two.de hour:20 hour:23 weekday:1 weekday:6 duration:60"
    assert {*expected.split(), "manner:language:de", "manner:channels:1"} <= found[0]
    assert {"hour:20", "weekday:6", "manner:airings:0", "manner:sub-titles:0"} <= found[1]
    assert not any("secret" in token for title in found.values() for token in title)


def test_context_uses_only_airings_on_one_side_of_the_cut(guide):
    cut = int((EVENING + datetime.timedelta(days=3)).replace(tzinfo=datetime.UTC).timestamp() * 1e6)
    found = tokens(guide, next_period=[1], cut=cut)
    assert "channel:one.de" in found[0] and "channel:two.de" not in found[0]  # trained on what aired before
    assert "channel:two.de" in found[1]
    assert tokens(guide, next_period=[], cut=cut)[1] == set()  # nothing of a later airing


def test_only_selected_kinds_of_context(guide):
    found = tokens(guide, kinds=("hour",)).values()
    assert {token.partition(":")[0] for title in found for token in title} == {"hour"}
    assert tokens(guide, kinds=()) == {0: set(), 1: set()}


def test_the_number_of_titles_at_a_time_does_not_matter(guide, monkeypatch):
    together = tokens(guide)
    monkeypatch.setattr(contexts, "CHUNK_TITLES", 1)
    assert tokens(guide) == together
    assert pq.read_table(guide.parent / "contexts.parquet")["title_id"].to_pylist() == sorted(
        title for title, own in together.items() for _ in own
    )


CHANGES = [  # zone, and 20:00 by its clock on the days before and after its two changes, in UTC
    ("America/Los_Angeles", ["2025-03-09T04:00", "2025-03-10T03:00", "2025-11-02T03:00", "2025-11-03T04:00"]),
    ("Australia/Lord_Howe", ["2025-04-05T09:00", "2025-04-06T09:30", "2025-10-04T09:30", "2025-10-05T09:00"]),
    ("Europe/London", ["2025-03-29T20:00", "2025-03-30T19:00", "2025-10-25T19:00", "2025-10-26T20:00"]),
]


@pytest.mark.parametrize(("zone", "starts"), CHANGES)
def test_an_hour_is_that_of_the_channels_clock_on_both_sides_of_a_change(tmp_path, zone, starts):
    rows = [
        Programme("Tatort", start=datetime.datetime.fromisoformat(start), source="a", zone=zone)
        for start in starts
    ]
    guide = tmp_path / publish_guide(tmp_path, rows).path
    found = tokens(guide, kinds=("hour", "weekday"))[0]
    assert found == {"hour:20", "weekday:6", "weekday:7"}  # all are Saturdays and Sundays


def test_hours_are_in_the_zone_of_the_channel(tmp_path):
    start = datetime.datetime(2025, 7, 1, 23, 30)  # a Tuesday
    zones = "America/Los_Angeles", "Europe/London", "Asia/Kathmandu"
    rows = [Programme("Tatort", start=start, channel=zone, source=zone, zone=zone) for zone in zones]
    guide = tmp_path / publish_guide(tmp_path, rows).path
    found = tokens(guide, kinds=("hour", "weekday"))[0]
    assert found == {"hour:16", "hour:0", "hour:5", "weekday:2", "weekday:3"}
