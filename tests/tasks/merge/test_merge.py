"""Merged guides of toy feeds: bytes, times, holes and days."""

import datetime
import re

import lxml.etree as etree
import pytest

from tasks.merge.errors import MergeError
from tests.tasks.merge.guides import NOW, Merger, airings, channel, channels, feed, programme, untagged

DETAILS = (
    '<sub-title lang="en">A &amp; B</sub-title>\n  <credits><actor role="x">N</actor></credits>'
    '<video><aspect>16:9</aspect></video><review type="text"><![CDATA[a < b]]></review><!-- note -->'
)


def test_programmes_are_copied_byte_for_byte_and_sorted(merged: Merger) -> None:
    late, early = programme("2000", "2100", "Late", more=DETAILS), programme("1900", "2000", "Early")
    other = programme("1800", "1900", "Other", channel="a&amp;b")
    guide = merged(feed(late, early, other, early))
    assert untagged(guide) == [other.encode(), early.encode(), late.encode()]
    assert guide.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tv') and guide.endswith(
        b"</tv>\n"
    )
    assert guide == merged(feed(late, early, other, early))  # no difference without a change
    assert channels(guide) == {"a&b": ["a&b"], "one": ["one"]}


def test_a_second_feed_fills_holes(merged: Merger) -> None:
    first = feed(channel("one", "One"), programme("1800", "1900", "A"), programme("2000", "2100", "C"))
    rows = (("1800", "1900", "Not A"), ("1900", "2000", "B"), ("2100", "2200", "D"))
    second = feed(channel("one", "ONE"), *(programme(*row) for row in rows))
    assert [title for *_, title in airings(merged(first, second))] == ["A", "B", "C", "D"]
    assert merged.report.filled_count == 2
    assert [title for *_, title in airings(merged(second, first))] == ["Not A", "B", "C", "D"]


def test_missing_stops_become_the_next_start(merged: Merger) -> None:
    rows = programme("1800", None, "A"), programme("1900", "1900", "B"), programme("2000", None, "C")
    later = programme("030000", None, "D")
    assert airings(merged(feed(*rows, later))) == [
        ("011800", "011900", "A"),
        ("011900", "012000", "B"),
        ("012000", "", "C"),
        ("030000", "", "D"),
    ]


def test_overlaps_are_cut_or_kept(merged: Merger) -> None:
    content = feed(programme("1800", "1930", "A"), programme("1900", "2000", "B"))
    assert airings(merged(content))[0] == ("011800", "011900", "A")
    assert airings(merged(content, overlaps="keep"))[0] == ("011800", "011930", "A")


def test_times_that_players_misread_are_written_in_utc(merged: Merger) -> None:
    forms = {
        "20250301180000": "18",
        "202503011900 BST": "18",
        "20250301200000 +01:00": "19",
        "2025030122": "22",
    }
    for form, hour in forms.items():
        text = f'<programme channel="one" start="{form}"><title>A</title></programme>'
        assert f'start="20250301{hour}0000 +0000"'.encode() in merged(feed(text))
    local = feed(programme("1800", "1900", "A", zone=""))
    assert b'start="20250301170000 +0000" stop="20250301180000 +0000"' in merged(
        local, zones=("feed0=Europe/Paris",)
    )


def test_the_end_of_summer_time_leaves_no_hole(merged: Merger) -> None:
    form = '<programme start="20251026%s" stop="20251026%s" channel="one"><title>%s</title></programme>'
    first = form % ("013000 +0200", "023000 +0200", "A") + form % ("033000 +0100", "043000 +0100", "C")
    second = form % ("003000 +0000", "023000 +0000", "B")
    now = datetime.datetime(2025, 10, 26, 12, tzinfo=datetime.UTC)
    guide = merged(feed(first), feed(second), now=now)
    assert [title for *_, title in airings(guide)] == ["A", "B", "C"] and merged.report.cut_count == 0


def test_days_back_and_ahead(merged: Merger) -> None:
    days = (f"{day:02}" for day in range(1, 9))
    content = feed(*(programme(f"{day}1000", f"{day}1100", day) for day in days))
    now = NOW.replace(day=4)
    guide = merged(content, now=now, days_back=1, days_forward=2)
    assert [title for *_, title in airings(guide)] == ["03", "04", "05", "06"]
    assert merged.report.outside_count == 4
    with pytest.raises(
        MergeError, match="the programmes of the feeds begin from 2025-03-01 10:00 UTC to 2025-03-08"
    ):
        merged(content, now=now.replace(year=2026))


def test_a_programme_that_is_on_air_at_midnight_makes_no_empty_guide(merged: Merger) -> None:
    content = feed(programme("032300", "040100", "Late"))
    guide = merged(content, now=NOW.replace(day=4), days_back=0, days_forward=0)
    assert [title for *_, title in airings(guide)] == ["Late"]


UNCLOSED = "<desc>B<category>News</category>"


def test_other_encodings_and_damaged_programmes(merged: Merger) -> None:
    text = '<?xml version="1.0" encoding="ISO-8859-1"?><tv>' + programme("1800", "1900", "Café") + "</tv>"
    assert airings(merged(text.encode("latin-1"))) == [("011800", "011900", "Café")]
    assert airings(merged(text.encode("utf-16"))) == [("011800", "011900", "Café")]
    damaged = feed(programme("1800", "1900", "Fish & chips"), programme("1900", "2000", "B</b>"))
    assert [title for *_, title in airings(merged(damaged))] == ["Fish & chips", "B"]
    unclosed = etree.fromstring(merged(feed(programme("1800", "1900", "A", more=UNCLOSED))))
    assert [element.tag for element in unclosed.find("programme")] == ["title", "desc", "category"]
    unreadable = feed(programme("1800", "1900", "A"), programme("9900", "1900", "Bad"), "<programme>")
    assert len(airings(merged(unreadable))) == 1 and merged.report.unreadable_count == 2


def test_other_attributes_are_unchanged(merged: Merger) -> None:
    element = programme("1800", "1930", "A").replace(" channel", ' clumpidx="0/2" note="start=\'x\'" channel')
    guide = merged(feed(element, programme("1900", "2000", "B")))
    assert b'stop="20250301190000 +0000" clumpidx="0/2" note="start=\'x\'" channel="one">' in guide


@pytest.mark.slow
def test_a_guide_of_ten_thousand_channels(merged: Merger) -> None:
    count = 10_000
    listed = [channel(f"c{number}", f"Name {number}") for number in range(count)]
    content = feed(*listed, *(programme("1800", "1900", "A", f"c{number}") for number in range(count)))
    lines = (f'#EXTINF:-1 tvg-name="Nam {number}",x\nu' for number in range(count))
    playlist = "#EXTM3U\n" + "\n".join([*lines, '#EXTINF:-1 tvg-id="C7",x'])
    guide = merged(content, playlist=playlist)
    assert re.findall(rb'<channel id="(\w+)"', guide) == [b"C7"]
    assert merged.report.open_proposals >= count
