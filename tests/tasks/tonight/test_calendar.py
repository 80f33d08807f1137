"""Calendars, read back by a parser written from RFC 5545."""

import datetime
import re

from hypothesis import given
from hypothesis import strategies as st

from tasks.tonight.calendar import escape_text, fold_line, render_calendar
from tests.tasks.tonight.evenings import at, recommendation

NOW = datetime.datetime(2026, 1, 14, 18, tzinfo=datetime.UTC)


def parse(text: str) -> list[dict[str, str]]:
    """Parses the events of a calendar; asserts the rules of the RFC for lines and components."""
    assert text.endswith("\r\n") and "\n" not in text.replace("\r\n", "")
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    lines = text.replace("\r\n ", "").split("\r\n")[:-1]
    events: list[dict[str, str]] = []
    open_ = []
    for line in lines:
        name, value = line.split(":", 1)
        assert re.fullmatch(r"[A-Z-]+", name)
        if name == "BEGIN":
            open_.append(value)
            events += [{}] if value == "VEVENT" else []
        elif name == "END":
            assert open_.pop() == value
        elif open_ == ["VCALENDAR", "VEVENT"]:
            assert name not in events[-1]
            events[-1][name] = value
    assert lines[0] == "BEGIN:VCALENDAR" and not open_ and {"VERSION:2.0"} < set(lines)
    return events


def unescape(value: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] in "nN" else found[1], value)


def test_an_event_for_each_programme():
    found = [
        recommendation(
            1, title="Rock; Paper, Scissors \\ “Él”", sub_title="One\nTwo", categories=("Crime, true", "Film")
        ),
        recommendation(2, stop=None),
        recommendation(3, stop=at("20:00")),  # before its start
    ]
    first, second, third = parse(render_calendar(found, NOW))
    assert unescape(first["SUMMARY"]) == "Rock; Paper, Scissors \\ “Él”"
    assert first["SUMMARY"] == "Rock\\; Paper\\, Scissors \\\\ “Él”"
    assert (first["DTSTAMP"], first["DTSTART"], first["DTEND"]) == (
        "20260114T180000Z",
        "20260114T201500Z",
        "20260114T214500Z",
    )
    assert unescape(first["DESCRIPTION"]) == "One\nTwo\nBecause you like Midsomer Murders (90%)"
    assert re.split(r"(?<!\\),", first["CATEGORIES"]) == ["Crime\\, true", "Film"]
    assert "DTEND" not in second and "DTEND" not in third
    assert len({event["UID"] for event in (first, second, third)}) == 3


def test_times_of_any_zone_are_utc():
    start = datetime.datetime(2026, 1, 15, 1, 15, tzinfo=datetime.timezone(datetime.timedelta(hours=5)))
    (event,) = parse(render_calendar([recommendation(start=start)], NOW))
    assert event["DTSTART"] == "20260114T201500Z"


def test_the_uid_of_a_programme_does_not_change():
    later = NOW + datetime.timedelta(days=1)
    assert len({parse(render_calendar([recommendation()], now))[0]["UID"] for now in (NOW, later)}) == 1


def test_an_empty_list_is_a_calendar():
    assert parse(render_calendar([], NOW)) == []


@given(st.text(), st.text())
def test_any_text_round_trips(title, description):
    (event,) = parse(render_calendar([recommendation(title=title, description=description)], NOW))
    kept = [
        re.sub(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", "", re.sub(r"\r\n?", "\n", text))
        for text in (title, description)
    ]
    assert unescape(event["SUMMARY"]) == kept[0]
    assert unescape(event["DESCRIPTION"]).startswith(kept[1])


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_folded_lines_unfold(text):
    parts = list(fold_line(escape_text(text)))
    assert all(len(part.encode()) <= 75 for part in parts)
    assert parts[0] + "".join(part[1:] for part in parts[1:]) == escape_text(text)
    assert all(part.startswith(" ") for part in parts[1:])
