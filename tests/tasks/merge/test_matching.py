"""Channels of playlists and feeds: equal, similar, contradicting, confirmed."""

import csv

import pytest

from tasks.merge.errors import MergeError
from tasks.merge.names import normalize
from tests.tasks.merge.guides import Merger, airings, channel, channels, feed, programme

PLAYLIST = "#EXTM3U\n"


def entry(name: str, id_: str = "", more: str = "") -> str:
    return f'#EXTINF:-1 tvg-id="{id_}" {more},{name}\nhttp://stream\n'


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("BBC One", "bbc-one"),
        ("Nicktoons & more", "Nicktoons and More"),
        ("Télé", "TELE"),
        ("ITV1+1", "ITV 1 plus 1"),
    ],
)
def test_equal_names(first: str, second: str) -> None:
    assert normalize(first) == normalize(second)


@pytest.mark.parametrize("other", ["BBC One HD", "BBC One +1", "BBC Two", "BBC One 4K"])
def test_distinct_names(other: str) -> None:
    assert normalize("BBC One") != normalize(other)


def rows(merged: Merger) -> list[dict[str, str]]:
    with open(merged.table, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def answer(merged: Merger, use: str, **changes: str) -> None:
    content = [{**row, "use": use, **changes} for row in rows(merged)]
    with open(merged.table, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(content[0]))
        writer.writeheader()
        writer.writerows(content)


def test_channels_get_the_ids_of_the_playlist(merged: Merger) -> None:
    content = feed(
        channel("x1", "BBC One"), channel("BBC2.uk", "Two"), channel("x3", "Three"),
        *(programme("1800", "1900", f"On {id_}", id_) for id_ in ("x1", "BBC2.uk", "x3")),
    )  # fmt: skip
    playlist = PLAYLIST + entry("BBC ONE", "bbc1") + entry("Second", "bbc2.UK") + entry("Nothing like it")
    guide = merged(content, playlist=playlist)
    assert channels(guide) == {"bbc1": ["BBC ONE", "BBC One"], "bbc2.UK": ["Second", "Two"]}
    assert airings(guide, "bbc1") == [("011800", "011900", "On x1")]
    assert merged.report.unmatched_channels == ["Nothing like it"]


@pytest.mark.parametrize(("shift", "begin"), [("+1", "011900"), ("-0.5", "011730"), ("5.75", "012345")])
def test_times_are_shifted(merged: Merger, shift: str, begin: str) -> None:
    content = feed(channel("a", "A"), programme("1800", "1900", "T", "a", zone=" +0000"))
    playlist = PLAYLIST + entry("A", "a", f'tvg-shift="{shift}"')
    assert airings(merged(content, playlist=playlist))[0][0] == begin
    assert airings(merged(content, playlist=playlist, shift=False))[0][0] == "011800"


def test_variants_are_proposed_and_used_after_confirmation(merged: Merger) -> None:
    content = feed(
        channel("one", "BBC One"), programme("1800", "1900", "T", "one"), programme("1800", "1900", "T")
    )
    playlist = PLAYLIST + entry("UK: BBC One HD") + entry("BBC One +1") + entry("BBC One")
    guide = merged(content, playlist=playlist)
    assert channels(guide) == {"BBC One": ["BBC One"]}
    proposed = {row["id"]: row for row in rows(merged)}
    assert proposed.keys() == {"UK: BBC One HD", "BBC One +1"}
    assert [proposed[id_]["shift_hours"] for id_ in ("UK: BBC One HD", "BBC One +1")] == ["0", "1"]
    answer(merged, "yes")
    guide = merged(content, playlist=playlist)
    assert airings(guide, "BBC One +1") == [("011900", "012000", "T")]
    assert airings(guide, "UK: BBC One HD") == airings(guide, "BBC One")
    assert merged.report.open_proposals == 0 and len(rows(merged)) == 2


def test_a_rejected_match_is_not_used_or_proposed_again(merged: Merger) -> None:
    content = feed(
        channel("one", "BBC One"), channel("two", "BBC Two"), programme("1800", "1900", "T", "two")
    )
    playlist = PLAYLIST + entry("BBC Two") + entry("BBC One HD")
    merged(content, playlist=playlist)
    answer(merged, "no", id="BBC One HD")
    merged(content, playlist=playlist)
    assert [row["use"] for row in rows(merged)] == ["no"] and merged.report.open_proposals == 0
    answer(merged, "no", id="BBC Two", channel="two")
    with pytest.raises(MergeError, match="no channel of"):
        merged(content, playlist=PLAYLIST + entry("BBC Two"))


def test_two_channels_with_the_name_of_one_are_proposed(merged: Merger) -> None:
    content = feed(
        channel("north", "ITV"),
        channel("south", "ITV"),
        channel("x", "X"),
        programme("1800", "1900", "T", "x"),
    )
    assert channels(merged(content, playlist=PLAYLIST + entry("itv") + entry("X"))).keys() == {"X"}
    assert {row["channel"] for row in rows(merged)} == {"north", "south"}


def listing(id_: str, titles: str) -> list[str]:
    """Makes programmes of an hour each, one per letter."""
    return [programme(f"{hour:02}00", f"{hour + 1:02}00", title, id_) for hour, title in enumerate(titles, 5)]


def test_a_channel_of_the_same_name_with_other_programmes_fills_no_hole(merged: Merger) -> None:
    uk = feed(channel("d.uk", "Discovery"), *listing("d.uk", "ABCDEFGHIJ"))
    same = feed(channel("disc", "Discovery"), *listing("disc", "ABCDEFGHIJKL"))
    us = feed(channel("d.us", "Discovery"), *listing("d.us", "NOPQRSTUVWXYZ"))
    playlist = PLAYLIST + entry("Discovery")
    assert [title for *_, title in airings(merged(uk, same, us, playlist=playlist))] == [*"ABCDEFGHIJKL"]
    assert [row["channel"] for row in rows(merged)] == ["d.us"]


def test_one_id_for_different_channels(merged: Merger) -> None:
    first = feed(channel("1", "Das Erste"), programme("1800", "1900", "A", "1"))
    second = feed(
        channel("1", "BBC One"), programme("1800", "1900", "B", "1"), programme("1900", "2000", "C", "1")
    )
    guide = merged(first, second)
    assert channels(guide) == {"1": ["Das Erste"], "1.2": ["BBC One"]}
    assert airings(guide, "1.2") == [("011800", "011900", "B"), ("011900", "012000", "C")]
    answer(merged, "yes")
    assert airings(merged(first, second)) == [("011800", "011900", "A"), ("011900", "012000", "C")]


def test_a_confirmed_channel_remains_if_its_target_is_gone(merged: Merger) -> None:
    content = feed(channel("bbc1", "BBC One"), programme("1800", "1900", "T", "bbc1"))
    header = "id,name,feed,channel,use\n"
    merged.table.write_text(f"{header}BBC1.uk,BBC 1,feed0,bbc1,yes\nBBC2.uk,BBC 2,feed0,bbc2,yes\n")
    guide = merged(content)
    assert airings(guide, "BBC1.uk") == [("011800", "011900", "T")]
    assert channels(guide) == {"BBC1.uk": ["BBC 1", "BBC One"]} and not merged.report.unmatched_channels


def test_a_table_with_errors_names_the_line(merged: Merger) -> None:
    content = feed(channel("one", "One"), programme("1800", "1900", "T"))
    merged.table.write_text("id,feed,channel,use\na,b,c,maybe\n")
    with pytest.raises(MergeError, match="line 2: use is 'maybe'; expected yes, no or nothing"):
        merged(content)
    merged.table.write_text("id,feed\n")
    with pytest.raises(MergeError, match="has no columns channel, use"):
        merged(content)
    for hours in ("inf", "nan"):
        merged.table.write_text(f"id,feed,channel,use,shift_hours\none,feed0,one,yes,{hours}\n")
        with pytest.raises(MergeError, match=f"line 2: shift_hours is {hours}; expected hours"):
            merged(content)
    merged.table.write_text("\ufeffid;feed;channel;use\none;feed0;one;No\n", encoding="utf-8")  # from Excel
    merged(content)
