"""Damaged XMLTV: heads, markup, encodings and truncated files."""

from pathlib import Path

import pytest
from guides import SOUND, guide, only, read, real_data, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.xmltv.prolog import read_prolog

PROGRAMME = '<programme channel="one" start="20250301200000"><title>{}</title></programme>'
TITLES = {
    "Tom & Jerry": "Tom & Jerry",
    "1 < 2 &lt; 3": "1 < 2 < 3",
    "caf&eacute;": "café",
    "&unknown;": "&unknown;",
    "<![CDATA[A & <b>B</b>]]>": "A & B",
    "&lt;SBS 8 뉴스&gt;": "<SBS 8 뉴스>",
    "a\x00b\x07c": "abc",
}


@pytest.mark.parametrize(
    ("broken", "stored", "reasons"),
    [
        (PROGRAMME.format("not closed").replace("</title>", ""), 22, {}),
        (PROGRAMME.format("no end").replace("</programme>", ""), 22, {}),
        ("</tv>\n<?xml version='1.0'?>\n<tv>" + PROGRAMME.format("second document"), 22, {}),
        (f"<group>{PROGRAMME.format('a')}</group>", 22, {}),
        ("<a>" * 1000 + PROGRAMME.format("a") + "</a>" * 1000, 22, {}),
        (f"<!-- {PROGRAMME.format('a')}\n<programme/> -->", 21, {}),
        ("<programme =channel start><title>a</title></programme>", 21, {"no_channel": 1}),
    ],
)
def test_one_broken_programme_does_not_affect_others(
    tmp_path: Path, broken: str, stored: int, reasons: dict[str, int]
) -> None:
    after = PROGRAMME.format("after").replace("one", "two")
    outcome = only(tmp_path, guide(broken, after, programmes=20))
    assert (outcome.counts.stored, outcome.reasons) == (stored, reasons)
    assert rows(tmp_path, "SELECT count(*) FROM programmes WHERE title = 'after'") == [(1,)]


@pytest.mark.parametrize("title", TITLES)
def test_titles_in_broken_markup(tmp_path: Path, title: str) -> None:
    only(tmp_path, guide(PROGRAMME.format(title)))
    assert rows(tmp_path, "SELECT title FROM programmes") == [(TITLES[title],)]


def test_a_truncated_file_is_read_up_to_the_cut(tmp_path: Path) -> None:
    complete = guide(programmes=20)
    outcome = only(tmp_path, complete[: complete.index(b"Show 15") + 6])
    assert (outcome.counts.stored, outcome.reasons) == (15, {"truncated": 1})
    assert rows(tmp_path, "SELECT line, excerpt FROM rejects") == [
        (18, SOUND.format(hour=15)[: SOUND.format(hour=15).index("Show") + 6])
    ]


def test_encodings(tmp_path: Path) -> None:
    text = guide(
        '<programme channel="one" start="20250301"><title>Élysée – Größe</title></programme>'
    ).decode()
    for name, content in {
        "utf8": text.encode(),
        "bom": b"\xef\xbb\xbf" + text.encode(),
        "utf16": text.replace("UTF-8", "UTF-16").encode("utf-16"),
        "latin1": text.replace("UTF-8", "windows-1252").encode("cp1252"),
        "lying latin1": text.replace("UTF-8", "ISO-8859-1").encode(),
        "lying utf8": text.encode("cp1252"),
    }.items():
        only(tmp_path, content, name=f"{name}.xml")
    assert rows(tmp_path, "SELECT title, count(*) FROM programmes GROUP BY title") == [("Élysée – Größe", 6)]


def test_too_many_rejects_fail_the_feed(tmp_path: Path) -> None:
    bad = ['<programme channel="one"><title>a</title></programme>'] * 3
    with pytest.raises(FeedError, match=r"3 of 11 programmes cannot be read \(bad_start 3\), more than 20%"):
        only(tmp_path, guide(*bad, programmes=8))
    assert rows(
        tmp_path,
        "SELECT (SELECT count(*) FROM feeds), (SELECT count(*) FROM programmes), (SELECT count(*) "
        "FROM rejects)",
    ) == [(0, 0, 0)]
    assert only(tmp_path, guide(*bad, programmes=8), max_reject_share=0.5).counts.rejected == 3


def test_raw_ampersands_and_the_repaired_file_give_equal_rows(tmp_path: Path) -> None:
    folder = real_data() / "edge-cases"
    outcomes = read(
        tmp_path, folder / "unescaped-amp_fr.BROKEN.xml.gz", folder / "unescaped-amp_fr.CLEAN.xml.gz"
    )
    assert [outcome.counts.stored for outcome in outcomes] == [9204, 9204]
    query = "SELECT channel, start, title, sub_title FROM programmes WHERE source LIKE '%{}%' ORDER BY ALL"
    assert rows(tmp_path, query.format("BROKEN")) == rows(tmp_path, query.format("CLEAN"))


def test_a_file_that_was_sent_as_text_is_recognized(tmp_path: Path) -> None:
    folder = real_data() / "edge-cases"
    with pytest.raises(FeedError, match=r"damaged compression.*sent as text.*fetch it again as binary"):
        read(tmp_path, folder / "corrupt-crlf_epgshare.xml.gz")
    assert read(tmp_path, folder / "corrupt-crlf_epgshare.CLEAN.xml.gz")[0].counts.stored == 203


PROGRAMMES = "\n".join(SOUND.format(hour=hour) for hour in range(5))
CONTENT = (
    f'<channel id="one"><display-name lang="en">One</display-name></channel>\n{PROGRAMMES}\n<!-- end -->'
    f"<?pi end?>"
)
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
ROOT = '<tv source-info-name="a" generator-info-name="b">'
HEADS = {
    "sound": f"{DECLARATION}\n<!DOCTYPE tv SYSTEM 'xmltv.dtd'>\n{ROOT}",
    "declaration without its end": f'<?xml version="1.0" encoding="UTF-8"\n{ROOT}',
    "declaration without ?": f'<?xml version="1.0" encoding="UTF-8">\n{ROOT}',
    "declaration with one quote": f'<?xml version="1.0" encoding="UTF-8?>\n{ROOT}',
    "instruction without its end": f"{DECLARATION}<?xml-stylesheet href='a.xsl'>\n{ROOT}",
    "doctype without its end": f'{DECLARATION}<!DOCTYPE tv SYSTEM "xmltv.dtd"\n{ROOT}',
    "subset without its end": f"{DECLARATION}<!DOCTYPE tv [ <!ELEMENT tv ANY>\n{ROOT}",
    "subset with examples": f"{DECLARATION}<!DOCTYPE tv [ <!-- <tv> <programme> --> "
    f'<!ENTITY x "<tv>"> ]>{ROOT}',
    "comment without its end": f"{DECLARATION}<!-- made by x --\n{ROOT}",
    "tag without its end": '<tv source-info-name="a" generator-info-name="b"\n',
    "tag that ends in a name": "<tv source-info-name=",
    "tag with one quote": '<tv source-info-name="a" generator-info-name="b>\n',
    "tag with three quotes": "<tv source-info-name='a' generator-info-name='b'c'>\n",
    "tag with a bracket": '<tv source-info-name="a <b> c" generator-info-name="b">',
    "name alone": "<tv\n",
    "no line breaks": '<tv date="2025>',
}


@pytest.mark.parametrize("name", HEADS)
def test_a_damaged_head_loses_no_programme(tmp_path: Path, name: str) -> None:
    (tmp_path / "g.xml").write_text(f"{HEADS[name]}{CONTENT}</tv>\n", encoding="utf-8")
    counts = read(tmp_path, tmp_path / "g.xml")[0].counts
    assert (counts.seen, counts.stored, counts.rejected) == (5, 5, 0)
    assert rows(tmp_path, "SELECT channel, name FROM channels") == [("one", "One")]


@pytest.mark.parametrize("name", ["tag without its end", "tag with one quote", "doctype without its end"])
def test_line_numbers_after_a_damaged_head(tmp_path: Path, name: str) -> None:
    (tmp_path / "g.xml").write_text(
        f"{HEADS[name]}{CONTENT}\n<programme>\n</programme></tv>", encoding="utf-8"
    )
    assert read(tmp_path, tmp_path / "g.xml")[0].counts.stored == 5
    assert rows(tmp_path, "SELECT line FROM rejects") == [(HEADS[name].count("\n") + 8,)]


def test_programmes_after_an_empty_root_are_read(tmp_path: Path) -> None:
    contents = {
        f"<tv/>\n{PROGRAMMES}": (5, {}),
        f"<tv date='1' />{PROGRAMMES}</tv>": (5, {}),
        "<tv/>\n<!-- end -->\n": (0, {}),
        f"<tv>{PROGRAMMES}</tv>\n<!-- {'x' * 5000} -->\n": (5, {}),
        f"<tv/>{PROGRAMMES}\n<programme": (5, {"truncated": 1}),
    }
    for number, (content, expected) in enumerate(contents.items()):
        (tmp_path / f"{number}.xml").write_text(content, encoding="utf-8")
        outcome = read(tmp_path, tmp_path / f"{number}.xml")[0]
        assert (outcome.counts.stored, outcome.reasons) == expected
    assert rows(tmp_path, "SELECT line, excerpt FROM rejects") == [(6, "<programme")]


@settings(max_examples=400)
@given(st.data())
def test_random_damage_of_a_head_is_refused_or_loses_nothing(data: st.DataObject) -> None:
    head = HEADS[data.draw(st.sampled_from(["sound", "subset with examples"]))].encode()
    place = data.draw(st.integers(1, len(head) - 1))
    length = data.draw(st.integers(0, 3))
    head = (
        head[:place]
        + data.draw(st.sampled_from([b"", b'"', b"'", b"<", b">", b"?>", b"<!--", b"]"]))
        + head[place + length :]
    )
    size = data.draw(st.sampled_from([7, 64, 10_000]))
    content = head + CONTENT.encode() + b"</tv>"
    try:
        _, blocks = read_prolog(
            iter([content[start : start + size] for start in range(0, len(content), size)]), "g"
        )
    except FeedError:
        return
    assert b"".join(blocks).count(b"<programme ") == 5
