"""A head that is damaged takes no programme with it: what stands before the content ends where the content
begins."""

from pathlib import Path

import pytest
from guides import SOUND, read, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.xmltv.prolog import read_prolog

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
def test_no_programme_goes_with_a_damaged_head(tmp_path: Path, name: str) -> None:
    (tmp_path / "g.xml").write_text(f"{HEADS[name]}{CONTENT}</tv>\n", encoding="utf-8")
    counts = read(tmp_path, tmp_path / "g.xml")[0].counts
    assert (counts.seen, counts.stored, counts.rejected) == (5, 5, 0)
    assert rows(tmp_path, "SELECT channel, name FROM channels") == [("one", "One")]


@pytest.mark.parametrize("name", ["tag without its end", "tag with one quote", "doctype without its end"])
def test_lines_are_true_after_a_damaged_head(tmp_path: Path, name: str) -> None:
    (tmp_path / "g.xml").write_text(
        f"{HEADS[name]}{CONTENT}\n<programme>\n</programme></tv>", encoding="utf-8"
    )
    assert read(tmp_path, tmp_path / "g.xml")[0].counts.stored == 5
    assert rows(tmp_path, "SELECT line FROM rejects") == [(HEADS[name].count("\n") + 8,)]


def test_what_follows_an_empty_root_is_read(tmp_path: Path) -> None:
    contents = {
        f"<tv/>\n{PROGRAMMES}": (5, {}),
        f"<tv date='1' />{PROGRAMMES}</tv>": (5, {}),
        "<tv/>\n<!-- end -->\n": (0, {}),
        f"<tv/>{PROGRAMMES}\n<programme": (5, {"truncated": 1}),
    }
    for number, (content, expected) in enumerate(contents.items()):
        (tmp_path / f"{number}.xml").write_text(content, encoding="utf-8")
        outcome = read(tmp_path, tmp_path / f"{number}.xml")[0]
        assert (outcome.counts.stored, outcome.reasons) == expected
    assert rows(tmp_path, "SELECT line, excerpt FROM rejects") == [(6, "<programme")]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_head_damaged_anywhere_is_refused_or_loses_nothing(data: st.DataObject) -> None:
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
