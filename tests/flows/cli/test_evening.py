"""Hours of an evening, and its programmes as JSON."""

import datetime
import json
from zoneinfo import ZoneInfo

import pytest

from flows.cli.options import read_date_or_instant, read_instant
from flows.cli.tonight import recommendation_document
from storage.home.zones import in_zone
from tasks.tonight.evening import TonightError, evening_interval
from tests.flows.command import ROOT
from tests.tasks.tonight.evenings import LATER, recommendation

BERLIN = ZoneInfo("Europe/Berlin")


def clock(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(f"2026-01-{text}").replace(tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("now", "begin", "end", "hours", "found"),
    [
        ("14T09:00", None, None, None, ("14T18:00", "15T00:00")),
        ("14T19:30", None, None, None, ("14T19:30", "15T00:00")),
        ("14T23:00", None, None, None, ("14T23:00", "15T02:00")),
        ("15T01:00", None, None, None, ("15T01:00", "15T04:00")),
        ("15T05:00", None, None, None, ("15T18:00", "16T00:00")),
        ("14T09:00", None, None, 4.0, ("14T09:00", "14T13:00")),
        ("14T09:00", "14T20:00", None, None, ("14T20:00", "15T00:00")),
        ("14T09:00", "16T20:00", None, None, ("16T20:00", "17T00:00")),
        ("14T12:00", "15T18:00", None, None, ("15T18:00", "16T00:00")),
        ("14T12:00", "15T01:00", None, None, ("15T01:00", "15T04:00")),
        ("14T09:00", "16T20:00", None, 24.0, ("16T20:00", "17T20:00")),
        ("14T09:00", None, "14T19:00", None, ("14T18:00", "14T19:00")),
    ],
)
def test_an_evening_is_from_six_or_now_to_midnight(now, begin, end, hours, found):
    given = begin and clock(begin), end and clock(end), hours
    assert evening_interval(clock(now), *given) == tuple(map(clock, found))


def test_an_end_before_the_beginning_is_refused():
    with pytest.raises(TonightError, match="is not before --until"):
        evening_interval(clock("14T19:00"), clock("14T22:00"), clock("14T20:00"), None)


def test_a_recommendation_has_the_documented_keys():
    page = (ROOT / "docs" / "tonight.md").read_text(encoding="utf-8")
    (documented,) = json.loads(
        page.split("prints a list of programmes, the best first:\n\n")[1].split("\n\n")[0]
    )
    document = recommendation_document(recommendation(also=(LATER,)))
    assert document.keys() == documented.keys()
    for key in ("also", "why"):
        assert document[key][0].keys() == documented[key][0].keys()


DAYLIGHT_SAVING = [  # zone, now, begin and end of the evening in UTC
    ("America/Los_Angeles", "2025-03-08T20:00", "2025-03-09T04:00", "2025-03-09T08:00"),
    ("America/Los_Angeles", "2025-03-09T12:00", "2025-03-10T01:00", "2025-03-10T07:00"),
    ("America/Los_Angeles", "2025-11-01T12:00", "2025-11-02T01:00", "2025-11-02T07:00"),
    ("America/Los_Angeles", "2025-11-02T12:00", "2025-11-03T02:00", "2025-11-03T08:00"),
    ("Australia/Lord_Howe", "2025-04-05T12:00", "2025-04-05T07:00", "2025-04-05T13:00"),
    ("Australia/Lord_Howe", "2025-04-06T12:00", "2025-04-06T07:30", "2025-04-06T13:30"),
    ("Australia/Lord_Howe", "2025-10-05T12:00", "2025-10-05T07:00", "2025-10-05T13:00"),
    ("Europe/London", "2025-03-29T23:30", "2025-03-29T23:30", "2025-03-30T02:30"),  # three hours have passed
    ("Europe/London", "2025-10-25T23:30", "2025-10-25T22:30", "2025-10-26T01:30"),
]


@pytest.mark.parametrize(("zone", "now", "begin", "end"), DAYLIGHT_SAVING)
def test_evenings_use_local_time_on_days_of_clock_changes(zone, now, begin, end):
    moment = in_zone(read_instant(now), ZoneInfo(zone))
    utc = [datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC) for text in (begin, end)]
    found = evening_interval(moment, None, None, None)
    assert [each.astimezone(datetime.UTC) for each in found] == utc


@pytest.mark.parametrize(
    ("zone", "date", "utc"),
    [
        ("America/Los_Angeles", "2025-03-09", "2025-03-10T06:59:59.999999"),
        ("America/Los_Angeles", "2025-11-02", "2025-11-03T07:59:59.999999"),
        ("Australia/Lord_Howe", "2025-04-06", "2025-04-06T13:29:59.999999"),
        ("Australia/Lord_Howe", "2025-10-05", "2025-10-05T12:59:59.999999"),
        ("Asia/Beirut", "2024-10-26", "2024-10-26T21:59:59.999999"),  # 23:59 comes twice
    ],
)
def test_a_date_is_its_end_in_the_zone_of_the_home(zone, date, utc):
    moment = in_zone(read_date_or_instant(date), ZoneInfo(zone))
    expected = datetime.datetime.fromisoformat(utc).replace(tzinfo=datetime.UTC)
    assert moment.astimezone(datetime.UTC) == expected


def test_an_instant_with_an_offset_is_that_instant():
    text, zone = "2025-03-31T18:00+02:00", ZoneInfo("America/Los_Angeles")
    for read in (read_date_or_instant, read_instant):
        assert f"{in_zone(read(text), zone):%F %H:%M}" == "2025-03-31 09:00"
