"""Which hours an evening is, and its programmes as JSON."""

import datetime
import json
from zoneinfo import ZoneInfo

import pytest

from flows.tonight import as_json, evening_of
from tasks.tonight.evening import TonightError
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
        ("14T09:00", "16T20:00", None, None, ("16T20:00", "16T23:00")),
        ("14T09:00", "16T20:00", None, 24.0, ("16T20:00", "17T20:00")),
        ("14T09:00", None, "14T19:00", None, ("14T18:00", "14T19:00")),
    ],
)
def test_an_evening_is_from_six_to_midnight_of_what_is_left(now, begin, end, hours, found):
    given = begin and clock(begin), end and clock(end), hours
    assert evening_of(clock(now), *given) == tuple(map(clock, found))


def test_an_end_before_the_beginning_is_refused():
    with pytest.raises(TonightError, match="is not before --until"):
        evening_of(clock("14T19:00"), clock("14T22:00"), clock("14T20:00"), None)


def test_a_recommendation_has_the_documented_keys():
    page = (ROOT / "docs" / "tonight.md").read_text(encoding="utf-8")
    (documented,) = json.loads(page.split("is a list, best first:\n\n")[1].split("\n\n")[0])
    document = as_json(recommendation(also=(LATER,)))
    assert document.keys() == documented.keys()
    for key in ("also", "why"):
        assert document[key][0].keys() == documented[key][0].keys()
