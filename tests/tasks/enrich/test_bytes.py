"""Everything except the additions is copied byte for byte, and the output satisfies xmltv.dtd."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from lxml import etree

from tasks.enrich.enrich import read_guide
from tasks.enrich.errors import EnrichError
from tasks.enrich.insertion import CATEGORY_PREDECESSORS, find_insertion_point
from tasks.enrich.settings import EnrichOptions
from tasks.enrich.source import open_source
from tasks.enrich.survey import read_survey
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.feeds import FeedError
from tasks.ingest.xmltv.frames import cut_frames, find_programmes, hide_cdata
from tests.tasks.enrich.guides import ADDED, BAKING, MARKED, NEW, programme

DTD = etree.DTD(str(Path(__file__).with_name("xmltv.dtd")))
LONG = """
  <programme start="20250301200000 +0000" channel="one" clumpidx="0/1">
    <title lang="en">{title}</title>
    <sub-title>One</sub-title>
    <desc>Two &amp; <![CDATA[three </programme><category>no</category>]]></desc>
    <!-- <category>no</category> <programme> -->
    <credits><director>A</director><actor role="b" guest="no">C<url>d</url></actor></credits>
    <date>2020</date>{category}
    <keyword>k</keyword>
    <language>en</language>
    <length units="minutes">60</length>
    <icon src="x"/>
    <episode-num system="onscreen">S1 E1</episode-num>
    <video><present>yes</present></video>
    <previously-shown/>
    <new/>
    <subtitles type="teletext"><language>English</language></subtitles>
    <rating system="BBFC"><value>15</value></rating>
    <review type="text">good</review>
  </programme>"""


def guide(*programmes: str, head: str = '<?xml version="1.0" encoding="UTF-8"?>\n') -> str:
    channels = '<channel id="one"><display-name>Channel One</display-name></channel>\n'
    return f"{head}<tv>\n{channels}{''.join(programmes)}\n</tv>\n"


FILES = {
    "plain": guide(programme(BAKING), programme(NEW)).encode(),
    "indented": guide(LONG.format(title=BAKING, category="")).encode(),
    "CRLF": guide(LONG.format(title=BAKING, category="")).replace("\n", "\r\n").encode(),
    "BOM": b"\xef\xbb\xbf" + guide(programme(BAKING)).encode(),
    "DOCTYPE": guide(
        programme(BAKING), head='<?xml version="1.0"?><!DOCTYPE tv [<!ENTITY a "<programme>">]>\n'
    ).encode(),
    "UTF-16": guide(programme(BAKING), head='<?xml version="1.0" encoding="UTF-16"?>').encode("utf-16"),
    "UTF-16 big": guide(programme("Ä 🎬"), programme(BAKING), head="").encode("utf-16-be"),
    "latin-1": guide(
        programme("Überall"), programme(BAKING), head='<?xml version="1.0" encoding="ISO-8859-1"?>'
    ).encode("latin-1"),
    "wrong encoding": guide(programme("Überall"), programme(BAKING)).encode("cp1252"),
    "invalid byte": guide(programme("Größe Ö"), programme(BAKING, "<desc>?</desc>"))
    .encode()
    .replace(b">?<", b">\xd0<"),
    "bare ampersand": guide(programme("Cut & Dry < 3"), programme(BAKING)).encode(),
    "tag not closed": guide(programme(BAKING).replace("</title>", ""), programme(BAKING)).encode(),
    "programme not closed": guide(programme("A").replace("</programme>", ""), programme(BAKING)).encode(),
    "cut end": guide(programme(BAKING), programme(NEW)).encode()[:-60],
    "control bytes": guide(programme("A\x01B"), programme(BAKING)).encode(),
    "comment not closed": guide(programme(BAKING), "<!-- ", programme(BAKING)).encode(),
    "CDATA not closed": guide(programme("A", "<desc><![CDATA[x</desc>"), programme(BAKING)).encode(),
    "programmes in a comment": guide("<!--", programme(BAKING), "-->", programme(BAKING)).encode(),
    "no root end": guide(programme(BAKING)).replace("</tv>", "").encode(),
    "another root": guide(programme(BAKING)).replace("tv>", "programmes>").encode(),
    "white space in tags": guide(programme(BAKING).replace("</programme>", "</programme >")).encode(),
    "no title, no start": guide(
        programme("").replace("<title></title>", ""), programme(BAKING, start="?"), programme(BAKING)
    ).encode(),
    "single quotes": guide(programme(BAKING).replace('"', "'")).encode(),
    "empty category": guide(programme(BAKING, "<category/>")).encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_all_other_bytes_are_copied(fill: Callable, name: str) -> None:
    content = FILES[name]
    written, report = fill(content, mark=True)
    filled = sum(report.filled_by_source.values())
    assert filled >= 1, report
    codec = {"UTF-16": "utf-16-le", "UTF-16 big": "utf-16-be"}.get(name, "")
    plain = written.decode(codec).encode() if codec else written
    removed, count = MARKED.subn(b"", plain)
    assert count == filled, plain
    assert (removed.decode().encode(codec) if codec else removed) == content


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (FILES["wrong encoding"], "cp1252"),
        (FILES["invalid byte"], "utf-8"),
        (FILES["latin-1"], "iso8859-1"),
        (FILES["plain"], "utf-8"),
    ],
)
def test_additions_are_in_the_encoding_of_the_bytes(tmp_path: Path, content: bytes, encoding: str) -> None:
    (tmp_path / "in.xml").write_bytes(content)
    with open_source(str(tmp_path / "in.xml"), tmp_path, IngestSettings()) as source:
        assert read_survey(source, tmp_path, EnrichOptions()).encoding == encoding
    titles = pq.read_table(tmp_path / "programmes.parquet").column("title").to_pylist()
    assert titles[0] in ("Überall", "Größe Ö", BAKING) and BAKING in titles


def test_files_without_gaps_or_programmes_are_copies(fill: Callable) -> None:
    for content in (
        guide(programme(BAKING, "<category>Crime</category>")).encode(),
        b'<?xml version="1.0"?><tv/>\n',
        guide().encode(),
    ):
        assert fill(content)[0] == content


@pytest.mark.parametrize("vocabulary", ["own", "etsi"])
def test_the_dtd_is_satisfied(fill: Callable, vocabulary: str) -> None:
    titles = (
        LONG.format(title=BAKING, category=element) for element in ("", "<category>Football</category>")
    )
    content = guide(*titles, programme(NEW), head='<?xml version="1.0"?>\n').encode()
    before = etree.fromstring(content)
    assert DTD.validate(before), DTD.error_log
    written, report = fill(content, vocabulary=vocabulary, mark=True, every=vocabulary == "etsi")
    assert sum(report.filled_by_source.values()) + report.extended == (2 if vocabulary == "own" else 3)
    after = etree.fromstring(written)
    assert DTD.validate(after), DTD.error_log
    assert len(after.findall(".//category")) > len(before.findall(".//category"))
    wrong = etree.fromstring(content.replace(b"<date>", b"<category>x</category><date>"))
    assert not DTD.validate(wrong)  # so that an order is held


def test_additions_follow_the_indentation(fill: Callable) -> None:
    written, _ = fill(FILES["CRLF"])
    assert b"<date>2020</date>\r\n    <category>COOKERY</category>\r\n    <keyword>" in written


@pytest.mark.parametrize("size", [1, 7, 64, 1000, 1 << 20])
def test_block_sizes_do_not_matter(size: int) -> None:
    content = FILES["indented"] + FILES["programmes in a comment"]
    blocks = (content[start : start + size] for start in range(0, len(content), size))
    places = []
    for frame in cut_frames(blocks, 0, 1, is_closed=True):
        assert frame.line == 1 + content.count(b"\n", 0, frame.offset)
        masked = hide_cdata(frame.content)
        for begin, end in find_programmes(frame.content):
            place, _ = find_insertion_point(frame.content, masked, (begin, end), CATEGORY_PREDECESSORS)
            places.append((frame.offset + begin, frame.offset + end, frame.offset + place))
    assert [content[begin : begin + 10] for begin, _, _ in places] == [b"<programme"] * 2
    assert all(content[:end].endswith(b"</programme>") for _, end, _ in places)
    assert [content[:place].rpartition(b"<")[2] for _, _, place in places] == [b"/date>", b"/title>"]


def test_a_programme_too_large_for_memory_is_copied(fill: Callable) -> None:
    large = programme("Large", f"<desc>{'x' * (5 << 20)}</desc>")
    content = guide(programme(BAKING), large, programme(BAKING)).encode()
    written, report = fill(content)
    assert (report.programmes, sum(report.filled_by_source.values())) == (2, 2)
    assert ADDED.sub(b"", written) == content


def test_damaged_compression_is_written_up_to_the_damage(fill: Callable, tmp_path: Path) -> None:
    content = guide(*(programme(BAKING, f"<desc>{number * 7919}</desc>") for number in range(4000))).encode()
    file = tmp_path / "cut.xml.gz"
    file.write_bytes(gzip.compress(content)[:-9000])
    written, report = fill(file)
    assert "ends early" in report.damage and report.programmes > 1000
    assert len(written) < len(content) and content.startswith(ADDED.sub(b"", written))


def test_damage_that_another_process_reads_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.enrich.enrich.SEPARATE_PROCESS_BYTES", 0)
    file = tmp_path / "cut.xml.gz"
    file.write_bytes(gzip.compress(guide(programme(BAKING)).encode())[:-9])
    with open_source(str(file), tmp_path, IngestSettings()) as source:
        survey, _ = read_guide(source, tmp_path, EnrichOptions())
    assert survey.damage == "the file ends early"


def test_files_that_cannot_be_reproduced_are_refused(fill: Callable) -> None:
    odd = guide(programme(BAKING), head="").encode("utf-16-le") + b"\0\xd8<\0"
    with pytest.raises(EnrichError, match=r"not valid UTF-16-LE .* convert it to UTF-8 first"):
        fill(odd)
    with pytest.raises(EnrichError, match="file of JSON lines; name an XMLTV file"):
        fill(b'{"channel": "one"}\n')
    with pytest.raises(FeedError, match="XML, but not XMLTV"):
        fill(b"<html></html>")
