"""Episode numbers are copied from other airings of the episode that agree."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lxml import etree

from tasks.enrich.episodes import ONSCREEN, agreeing_numbers
from tests.tasks.enrich.guides import BAKING, programme
from tests.tasks.enrich.test_bytes import DTD, LONG, guide

NUMBER = re.compile(rb"\s*<episode-num [^>]*>[^<]*</episode-num><!-- guidespace 1.00 -->")
SPORT = "<category>Sport</category>"


def number(text: str, system: str = "onscreen") -> str:
    return f'<episode-num system="{system}">{text}</episode-num>'


def airing(*numbers: str, title: str = "Odd", sub_title: str = "The end") -> str:
    return programme(title, f"<sub-title>{sub_title}</sub-title>{SPORT}{''.join(numbers)}")


MORE = airing(number("S1 E8"), sub_title="More")


def numbers_of(written: bytes) -> list[list[tuple[str, str]]]:
    programmes = etree.fromstring(written).iter("programme")
    return [[(each.get("system"), each.text) for each in one.iter("episode-num")] for one in programmes]


def test_an_episode_gets_the_numbers_of_its_other_airings(fill: Callable) -> None:
    both = number("0.4.", "xmltv_ns"), number("S1 E5")
    rows = airing(*both), airing(title="ODD (5/6)", sub_title="The End!"), airing(sub_title="Another"), MORE
    written, report = fill(guide(*rows).encode(), episodes=True)
    both_numbers = [("xmltv_ns", "0.4."), ("onscreen", "S1 E5")]
    assert numbers_of(written) == [both_numbers, both_numbers, [], [("onscreen", "S1 E8")]]
    assert (report.without_number, report.numbers_added) == (2, 1)
    untouched, off = fill(guide(*rows).encode())
    assert untouched == guide(*rows).encode() and off.without_number == 0


@pytest.mark.parametrize(
    "rows",
    [
        [airing(number("S1 E5")), airing(number("S1 E6"))],
        [airing(number("S1 E5")), airing(number("0.7.", "xmltv_ns"))],  # of two systems, two episodes
        [airing(number("S1 E5"), number("S1 E6"))],
        [airing(number("E5")), airing(number("S3 E2"), sub_title="Another")],  # numbered in two ways
        [airing(number("EP00123.0005", "dd_progid"))],
        [airing(number("S1 E5"), title="Even")],
        [airing(number("S1 E5"), sub_title="Another")],
        [airing(number("S1 E5"))] * 3,  # one sub-title in all: part of the show's name
        [],
    ],
)
def test_disagreeing_airings_are_ignored(fill: Callable, rows: list[str]) -> None:
    content = guide(*rows, *(() if len(rows) == 3 else (MORE,)), airing()).encode()
    written, report = fill(content, episodes=True)
    assert written == content and (report.numbers_added, report.without_number) == (0, 1)


@pytest.mark.parametrize(
    ("title", "sub_title"), [("Odd", "Episode 4"), ("Odd", "?!"), ("To be announced", "The end")]
)
def test_numbered_sub_titles_and_placeholders_are_ignored(fill: Callable, title: str, sub_title: str) -> None:
    with_number, unknown = (
        airing(*element, title=title, sub_title=sub_title) for element in ([number("S1 E4")], [])
    )
    content = guide(with_number, unknown, MORE).encode()
    assert fill(content, episodes=True)[0] == content


def test_numbers_from_the_guide_of_the_home(fill: Callable, tmp_path: Path) -> None:
    titles, sub_titles = ["Odd (5/6)", "Odd", "Odd", "Nobody"], ["THE END", "Another", "A third", "The end"]
    numbers = [["0.4.", "EP1.5"], ["S1 E2", "0 . 1 . "], ["E5"], ["S9 E9"]]
    systems = [["XMLTV_NS", "dd_progid"], ["onscreen", "xmltv_ns"], ["tmdb"], [None]]
    columns = {
        "title": titles,
        "sub_title": sub_titles,
        "episode_numbers": numbers,
        "episode_systems": systems,
    }
    pq.write_table(pa.table(columns), tmp_path / "programmes.parquet")
    rows = airing(), airing(sub_title="Another"), airing(sub_title="A third")
    written, report = fill(guide(*rows).encode(), episodes=True, home_guide=tmp_path)
    both = [("xmltv_ns", "0 . 1 . "), ("onscreen", "S1 E2")]
    assert numbers_of(written) == [[("xmltv_ns", "0.4.")], both, []] and report.numbers_added == 2
    against = airing(number("S1 E9")), airing()
    assert fill(guide(*against).encode(), episodes=True, home_guide=tmp_path)[1].numbers_added == 0


def test_episode_numbers_follow_the_dtd_and_other_bytes_are_copied(fill: Callable) -> None:
    """Numbers follow the country or an earlier element, not the icon of a rating or the language
    of subtitles.
    """
    element = '    <episode-num system="onscreen">S1 E1</episode-num>\n'
    url = "    <url>u</url>\n    <country>UK</country>\n"
    full = LONG.format(title=BAKING, category="").replace("</value>", '</value><icon src="y"/>')
    assert full.count(element) == 1
    gaps = [
        full.replace(element, ""),
        full.replace(element, url),
        full.replace("<credits>", "<credits >").replace(element, ""),
    ]
    more = programme(BAKING, f"<sub-title>More</sub-title>{number('S1 E8')}")
    short = programme(BAKING, "<sub-title>one</sub-title><rating><value>1</value></rating>")
    content = guide(full, *gaps, short, more, head='<?xml version="1.0"?>\n').encode()
    assert DTD.validate(etree.fromstring(content)), DTD.error_log
    for text in (content, content.replace(b"\n", b"\r\n")):
        written, report = fill(text, episodes=True, mark=True)
        assert report.numbers_added == 4 and DTD.validate(etree.fromstring(written)), DTD.error_log
        assert len(NUMBER.findall(written)) == 4
        without, _ = fill(text, mark=True)
        assert NUMBER.sub(b"", written) == without
    added = element.strip().encode() + b"<!-- guidespace 1.00 -->"
    assert b'<icon src="x"/>\r\n    ' + added + b"\r\n    <video>" in written
    assert b"<country>UK</country>\r\n    " + added in written
    assert b"</category><!-- guidespace 1.00 -->" + added + b"<rating>" in written


def test_additions_to_damaged_programmes_are_in_order(fill: Callable) -> None:
    odd = "<rating><value>1</value><sub-title>The end</sub-title></rating>"
    content = guide(airing(number("S1 E5")), programme(BAKING, odd), MORE, airing()).encode()
    written, report = fill(content, episodes=True, mark=True)
    assert NUMBER.sub(b"", written) == fill(content, mark=True)[0] and report.numbers_added == 1


def test_numbers_are_written_in_the_encoding_of_the_file(fill: Callable) -> None:
    rows = airing(number("S1 E5 &amp; &#8470;")), airing(), MORE
    content = guide(*rows, head='<?xml version="1.0" encoding="ISO-8859-1"?>').encode("latin-1")
    written, _ = fill(content, episodes=True)
    assert numbers_of(written)[0] == numbers_of(written)[1] == [("onscreen", "S1 E5 & №")]


def test_agreement_of_airings() -> None:
    one, other = (0, "a"), (1, "a")
    airings = [(one, [("onscreen", "S1 E1")])] * 5 + [(other, [("onscreen", "E7")]), (one, [])]
    airings += [((title, "b"), [(ONSCREEN, f"{season}E8")]) for title, season in enumerate(("S1 ", ""))]
    assert agreeing_numbers({one, other, (2, "a")}, airings) == {
        one: [("onscreen", "S1 E1")],
        other: [("onscreen", "E7")],
    }
    assert agreeing_numbers({one}, [*airings, (one, [("onscreen", "S1 E2")])]) == {}
