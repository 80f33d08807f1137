"""Damaged markup does not add roles, attributes or words of other elements."""

import json
from pathlib import Path
from typing import Any

import pytest
from guides import SOUND, guide, read, real_data, rows
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from tasks.ingest.readers import read_batches
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import Feed
from tasks.ingest.xmltv.fallback.balance import balance

PROGRAMME = '<programme channel="one" start="20250301200000" stop="20250301210000">{}</programme>'


def read_one(folder: Path, content: str) -> dict[str, Any]:
    """Returns the non-empty columns of a programme between two others, which must be complete."""
    file = folder / "g.xml"
    file.write_bytes(guide(SOUND.format(hour=1), content, SOUND.format(hour=23)))
    feed = Feed(source="g", file=file, content_digest="", bytes=file.stat().st_size)
    (batch,) = read_batches(FeedStream(feed, 1 << 30), 1 << 30)
    assert batch.rejects.num_rows == 0
    first, columns, last = batch.programmes.to_pylist()
    assert (first["title"], last["title"]) == ("Show 1", "Show 23")
    for details in batch.details.to_pylist():
        columns |= details if details.pop("row") == 1 else pytest.fail("details of a neighbour")
    return {name: value for name, value in columns.items() if value not in (None, [])}


def person(name: str, role: str = "actor") -> dict[str, str | None]:
    return {"role": role, "name": name, "character": None}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<title>T</title><desc>Words<category>c</category><date>2024</date><new/>",
         {"description": "Words", "categories": ["c"], "date": "2024", "is_new": True}),
        ("<title>T<desc>Words</desc><category>c<category>d</category>",
         {"title": "T", "description": "Words", "categories": ["c", "d"]}),
        ("<title>T</title><desc>Words</title><sub-title>s</sub-title>",
         {"description": "Words", "sub_title": "s"}),
        ("<title>T</title><credits><actor>Ada Quill <us></actor><actor>Ben</actor></credits>"
         "<category>c</category>",
         {"credits": [person("Ada Quill <us>"), person("Ben")], "categories": ["c"]}),
        ("<title>T</title><credits><actor>Ada<actor>Ben<director>Dee</credits><category>c</category>",
         {"credits": [person("Ada"), person("Ben"), person("Dee", "director")], "categories": ["c"]}),
        ("<title>T</title><credits><actor>Ada</actor><category>c</category>",
         {"credits": [person("Ada")], "categories": ["c"]}),
        ("<title>T</title><desc>a <b>bold</b> word</desc></b>", {"description": "a bold word"}),
        ("<title>I <3 U</title><desc>if a<b and c>d</desc>",
         {"title": "I <3 U", "description": "if a<b and c>d"}),
        ('<title lang="en>T</title><desc lang=de>Words</desc>', {"title": "T", "description": "Words"}),
        ("<title>T</title><desc Words</desc><category>c</category",
         {"description": "Words", "categories": ["c"]}),
        ("<Title>T</title><desc><![CDATA[a <x> b]]><category>c</category>",
         {"description": "a <x> b", "categories": ["c"]}),
        ("<title>T</title><desc><![CDATA[Words</desc><category>c</category>",
         {"description": "Words", "categories": ["c"]}),
        ("<title>T</title><desc>Words ]]> more</desc><?pi", {"description": "Words ]]> more"}),
        ('<title>T</title><icon src="a"width="5"src="b"><length units="minutes"x="1">60</length><us>',
         {"icon": "a", "length_minutes": 60.0}),
    ],
)  # fmt: skip
def test_damaged_markup_adds_nothing(tmp_path: Path, content: str, expected: dict[str, object]) -> None:
    columns = read_one(tmp_path, PROGRAMME.format(content))
    assert {name: columns[name] for name in expected} == expected
    assert columns.keys() - {"extra", "title_language", "channel", "start", "stop"} == {"title", *expected}


@pytest.mark.parametrize(
    ("tag", "stop"),
    [
        ('<programme start="20250301200000"stop="20250301210000"channel="one">', 21),
        ("<programme start='20250301200000'stop='20250301210000'channel=one>", 21),
        ('<programme start="20250301200000" stop="20250301210000" channel="one" <title>T</title>', 21),
        ('<programme start="20250301200000" start="x" stop="20250301210000" channel="one">', 21),
        ('<programme start="20250301200000" end="20250301210000" channel="one">', 21),
        ('<programme start="20250301200000" stop="20250301213000" end="20250301210000" channel="one">', 21.5),
    ],
)
def test_every_attribute_of_a_tag_is_read(tmp_path: Path, tag: str, stop: float) -> None:
    columns = read_one(tmp_path, tag + "<title>T</title></programme>")
    assert (columns["stop"].hour + columns["stop"].minute / 60, columns["channel"]) == (stop, "one")
    assert columns.get("extra") == ('{"@end":"20250301210000"}' if "end=" in tag else None)
    assert "stop_note" not in columns


@pytest.mark.parametrize(
    ("element", "column"),
    [
        ("title", "title"),
        ("sub-title", "sub_title"),
        ("desc", "description"),
        ("date", "date"),
        ("category", "categories"),
        ("keyword", "keywords"),
        ("language", "language"),
    ],
)  # fmt: skip
def test_html_that_breaks_lines_separates_words(tmp_path: Path, element: str, column: str) -> None:
    content = f"<{element}>one<br/>two<p>three</p>f<b>o</b>ur<i/></{element}>"
    columns = read_one(tmp_path, PROGRAMME.format(content + "<title>T</title>"))
    assert columns[column] in ("one two three four", ["one two three four"])


def test_unknown_elements_in_credits_are_stored_in_extra(tmp_path: Path) -> None:
    crew = "<actor>Ada<br/>Quill</actor><key-grip>Gus</key-grip><category>c</category>"
    columns = read_one(tmp_path, PROGRAMME.format(f"<title>T</title><credits>{crew}</credits>"))
    assert columns["credits"] == [person("Ada Quill")]
    (kept,) = json.loads(str(columns["extra"]))["credits"]
    assert (kept["key-grip"], kept["category"]) == (["Gus"], ["c"])


def test_content_between_programmes_is_ignored(tmp_path: Path) -> None:
    """A mutation once added this content to the previous programme."""
    rest = "<progr<title>U</title><desc>d</desc><category>x</category><new/></programme>"
    columns = read_one(tmp_path, PROGRAMME.format("<title>T</title><category>c</category>") + rest)
    assert (columns["title"], columns["categories"]) == ("T", ["c"])
    assert columns.keys().isdisjoint({"description", "is_new", "translations"})


def test_unknown_elements_are_stored_and_case_is_ignored(tmp_path: Path) -> None:
    content = (
        '<Title>T</Title><New/><Finale x="1">last</Finale><actor>Ann</actor>'
        "<finale-of><title>U</title></finale-of>"
        '<episode-num system="XMLTV_NS">1.2.</episode-num>'
    )
    columns = read_one(tmp_path, PROGRAMME.format(content))
    assert (columns["title"], columns["is_new"]) == ("T", True)
    assert json.loads(str(columns["extra"])) == {
        "Finale": [{"@x": "1", "#text": "last"}],
        "actor": ["Ann"],
        "finale-of": [{"title": ["U"]}],
    }
    assert columns["episode_systems"] == ["xmltv_ns"]
    flat = "<title>T</title>" + content[content.index("<episode-num") :]
    assert read_one(tmp_path, PROGRAMME.format(flat))["episode_systems"] == [
        "xmltv_ns"
    ]  # read by the scanner


@pytest.mark.parametrize(
    ("length", "minutes"),
    [
        ('<length units="seconds">3600</length>', 60),
        ('<length units="Mins">55</length>', 55),
        ('<length units="hours">1,5</length>', 90),
        ("<length>3600</length>", 60),
        ("<length>60</length>", 60),
        ("<length>1</length>", 60),
        ("<length>90</length>", None),
        ('<length unit="seconds">3600</length>', 60),
        ('<length units="frames">90000</length>', None),
        ('<length units="minutes" x="1">60</length>', 60),
    ],
)  # fmt: skip
def test_a_length_without_units_is_used_if_it_fits_the_times(
    tmp_path: Path, length: str, minutes: float | None
) -> None:
    columns = read_one(tmp_path, PROGRAMME.format("<title>T</title>" + length))
    assert columns.get("length_minutes") == minutes
    (kept,) = json.loads(str(columns["extra"]))["length"]
    element = etree.fromstring(length)
    expected = {f"@{name}": value for name, value in element.items()} | {"#text": element.text}
    assert kept == (expected if len(expected) > 1 else element.text)


def test_a_length_without_times_to_fit_is_unknown(tmp_path: Path) -> None:
    programme = (
        '<programme channel="one" start="20250301200000"><title>T</title><length>60</length></programme>'
    )
    assert "length_minutes" not in read_one(tmp_path, programme)


def test_the_reports_of_damaged_markup(tmp_path: Path) -> None:
    folder = real_data() / "reports"
    read(
        tmp_path,
        folder / "17-tag-like-actor.xml",
        folder / "25-wrong-attributes.xml",
        folder / "28-flags.xml",
    )
    assert rows(tmp_path, "SELECT credits FROM details WHERE credits IS NOT NULL") == [
        ([person("Ada Quill <us>"), person("Ben Rowe")],)
    ]
    query = "SELECT length_minutes FROM schedule WHERE source LIKE '%/25-%' ORDER BY start"
    assert rows(tmp_path, query) == [(60.0,), (60.0,), (60.0,), (55.0,), (90.0,)]
    query = "SELECT title, is_new FROM schedule WHERE source LIKE '%/28-%' AND is_new ORDER BY title"
    assert rows(tmp_path, query) == [("B", True), ("C", True), ("H", True)]


TOKENS = [
    *("<title>", "</title>", "<desc>", "</desc>", "<credits>", "</credits>", "<actor>", "</actor>"),
    *("<us>", "</us>", "<a b='c'>", "<b/>", "<", ">", "]]>", "<a ", "<desc ", "<![CDATA[", "<?p?>", " "),
    *('<icon src=x y="z>', "</programme>", "<rating>", "<value>", "text", "\n", "<tv>", "</tv>"),
    *("<Desc>", '<desc x="<">', "<a\nb='1'\nb='2'>", "'", '"'),
]


@given(st.lists(st.sampled_from(TOKENS), max_size=30))
@example(["<desc ", "'", "\n"])
def test_balanced_content_is_well_formed_and_stable(tokens: list[str]) -> None:
    content = "<programme>" + "".join(tokens)
    balanced = balance(content)
    etree.fromstring(f"<tv>{balanced}</tv>")
    assert balance(balanced) == balanced
    assert balanced.count("\n") == content.count("\n")


@pytest.mark.slow
def test_balancing_takes_linear_time() -> None:
    """With quadratic time, each input exceeds the time limit of the suite."""
    for piece in ("<a>", "<![CDATA[", "<a", "<desc a", '<a b="', "</a>", "<desc>", "a" * 20, "<a 'b"):
        balance("<programme>" + piece * (400_000 // len(piece)))
    balance("<programme " + "a" * 2_000_000)
