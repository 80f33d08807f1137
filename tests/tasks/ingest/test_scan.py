"""The scanner yields the same columns as the parser and rejects other forms."""

import gzip
import random
from pathlib import Path
from unittest.mock import patch

import pytest
from guides import guide, real_data

from tasks.ingest.encoding import Encoding
from tasks.ingest.readers import read_batches
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import Feed
from tasks.ingest.xmltv import records
from tasks.ingest.xmltv.scan import scan
from tasks.ingest.xmltv.text import repair

PLAIN = (
    '<programme channel="one" start="20250301" stop="20250302"><title lang="en">T</title><desc>d</desc>'
    "<date>2024</date><category>c</category></programme>"
)
PIECES = [
    "<programme", "</programme>", "<title>", "<title lang='de'>", '<title lang="de">', "</title>",
    "<title/>", "<sub-title>s</sub-title>", "<desc>", "</desc>", '<desc lang="x"/>', "<category>",
    "</category>", "<category/>", '<episode-num system="xmltv_ns">0.1.</episode-num>', "<episode-num>",
    "</episode-num>", "<date>", "</date>", "<new/>", "<credits>", ' channel="b"', ' start="2025"',
    ' stop=""', ' lang="de"', '<category lang="de">', ' clumpidx="1/2"', '<desc lang="de">',
    ' lang="&amp;"', ' x="1"', ' xml:lang="en"', ' x:y="1"', ">", "<", "/", '"', "'", "=", " ", "\n",
    "\r\n", "\t", "&amp;", "&#233;", "&#13;", "&lt;b&gt;", "&quot;", "&#xFFFF;", "\uffff", "é", "\u200b",
    "Ã©", "]]>", "<![CDATA[x]]>", "<!-- c -->", "<?p?>", "x", "  ", "</tv>", "<tv>", '<channel id="a">',
    "</channel>",
]  # fmt: skip


def read(content: bytes, folder: Path, *, scanned: bool) -> dict[str, list[dict[str, object]]]:
    """Reads all rows of a guide, with the scanner or without."""
    file = folder / "g.xml"
    file.write_bytes(content)
    stream = FeedStream(Feed(source="g", file=file, content_digest="", bytes=len(content)), 1 << 30)
    with patch.object(records, "scan", scan if scanned else lambda content: None):
        batches = list(read_batches(stream, 1 << 30))
    tables: dict[str, list[dict[str, object]]] = {
        kind: [] for kind in ("programmes", "details", "originals", "channels", "rejects", "root")
    }
    for batch in batches:  # batch bounds depend on the scanner, so rows are renumbered
        first = len(tables["programmes"])
        for kind, rows in tables.items():
            for row in getattr(batch, kind).to_pylist():
                rows.append(row | {"row": row["row"] + first} if kind in ("details", "originals") else row)
    tables["originals"].sort(key=repr)
    return tables


def agree(content: bytes, folder: Path) -> None:
    assert read(content, folder, scanned=True) == read(content, folder, scanned=False)


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace('stop="20250302"', ""),
        PLAIN.replace("<desc>d</desc>", ""),
        PLAIN.replace(">T<", "><").replace(">c<", "> <").replace(">d<", "> d\\n &amp;amp; Ã© <"),
        PLAIN.replace(">T<", '>"T" &amp; &lt;b&gt;U&lt;/b&gt; &#233;&#xe9;<'),
        PLAIN.replace("><", ">\n\t <").replace("T", "T\r\nU"),
        PLAIN.replace('lang="en"', 'lang="en" x="y"')
        .replace("<title ", "<title  ")
        .replace("</title>", "</title >"),
        PLAIN.replace("20250301", "soon") + PLAIN,
        PLAIN.replace(
            "<category>", '<sub-title lang="de">s</sub-title><category lang="de">b</category><category>'
        ),
        PLAIN.replace("<desc>", '<desc lang="de">')
        .replace(">c<", "> <")
        .replace("<category>", '<category lang="de">'),
        PLAIN.replace("<desc>d", '<desc lang="de"> ').replace("<date>", '<sub-title lang="de"/><date>'),
        PLAIN.replace(" start=", ' clumpidx="0/2" x="&lt;é&quot;" start=').replace(
            "<category>", '<category lang="">'
        ),
        PLAIN + PLAIN.replace("one", ""),
        PLAIN.replace(
            "<date>2024</date>",
            "<date/><category/><category>e</category><episode-num system=''>1</episode-num>".replace(
                "''", '"onscreen"'
            ),
        ),
    ],
)  # fmt: skip
def test_accepted_forms(tmp_path: Path, content: str) -> None:
    assert scan(repair((content * 3).encode(), Encoding("utf-8"))[0]) is not None
    agree(guide(content * 3), tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.replace(">T<", ">1 > 2<"),
        PLAIN.replace("</desc>", "</title>"),
        PLAIN.replace("</programme>", ""),
        PLAIN.replace("<desc>", "<desc><b/>"),
        PLAIN.replace("<title", "text<title"),
        PLAIN.replace("<desc>d</desc>", "<title>U</title>"),
        PLAIN.replace('channel="one"', "channel='one'"),
        PLAIN.replace('channel="one"', 'channel="one" channel="two"'),
        PLAIN.replace('"20250302"', '"20250302"/'),
        PLAIN + PLAIN.replace("stop", "end"),
        PLAIN.replace("one", "o\nne"),
        PLAIN.replace("<title ", "<title\n"),
        PLAIN.replace(' lang="en"', ' lang="en" lang="de"'),
        PLAIN.replace("T", "\uffff"),
        PLAIN + "</tv><tv>" + PLAIN,
        PLAIN + "text",
        PLAIN + "<pro<channel id='a'>x<category>of none</category></programme",
        '<channel id="a"/>' + PLAIN,
        "",
    ],
)  # fmt: skip
def test_rejected_forms(tmp_path: Path, content: str) -> None:
    assert scan(repair(content.encode(), Encoding("utf-8"))[0]) is None
    agree(guide(content, PLAIN), tmp_path)


def mutated(rng: random.Random) -> bytes:
    """Returns a few programmes with random pieces inserted."""
    text = PLAIN * 3
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        position = rng.randrange(len(text))
        text = text[:position] + rng.choice(PIECES) + text[position + rng.choice((0, 0, 1, 8)) :]
    return guide(text)


@pytest.mark.parametrize("count", [100, pytest.param(100_000, marks=pytest.mark.soak)])
@pytest.mark.timeout(3600)
def test_both_readers_agree_on_mutations(tmp_path: Path, count: int) -> None:
    for seed in range(count):
        agree(mutated(random.Random(seed)), tmp_path)


@pytest.mark.parametrize(
    "guides", [pytest.param(3, marks=pytest.mark.slow), pytest.param(None, marks=pytest.mark.soak)]
)
@pytest.mark.timeout(3600)
def test_both_readers_agree_on_real_guides(tmp_path: Path, guides: int | None) -> None:
    """The three smallest guides, or all of them."""
    files = sorted((real_data() / "guides").glob("*.gz"), key=lambda file: file.stat().st_size)
    for file in files[:guides]:
        agree(gzip.decompress(file.read_bytes()), tmp_path)
