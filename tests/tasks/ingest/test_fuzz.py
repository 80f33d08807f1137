"""Mutated guides are read, rejected or refused with one line. ``corpus/`` has inputs that once failed."""

import random
from pathlib import Path

import pytest

from tasks.ingest.batches import ProgrammeBatch
from tasks.ingest.readers import read_batches
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import Feed, FeedError

CORPUS = sorted(Path(__file__).with_name("corpus").glob("*.xml"))
PIECES = [
    b"<programme", b"</programme>", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<!DOCTYPE", b"&x;", b"&#0;",
    b"&#xD800;", b"&#x1F600;", b"\x00", b"\xff", b"\xed\xa0\x80",
    b"<tv>", b"</tv>", b"<?xml encoding='utf-7'?>", b"<?pi", b"?>", b"<title", b"'", b'"', b"=", b">",
    b"<", b"/>", b"xmlns:a='b'", b"a:b", b"xml:lang='x'", b"xmlns='http://x'",
    b"encoding='utf-16'", b"encoding='hex'", b"<credits><actor>", b"<desc>", b"<channel id='a'>",
    b"<episode-num system='xmltv_ns'>1.2.3",
]  # fmt: skip
RICH = b"""<?xml version="1.0" encoding="UTF-8"?>\n<tv><channel id="a"><display-name>A</display-name>
<icon src="i"/></channel>
<programme channel="a" start="20250301100000 +0100" stop="20250301110000 +0100">
<title lang="en">T</title><title lang="de">U</title><sub-title>s</sub-title><desc>d</desc>
<credits><actor role="r">n</actor></credits><date>2024</date><category>c</category><keyword>k</keyword>
<length units="minutes">60</length><icon src="p"/><url>u</url>
<episode-num system="onscreen">S1E2</episode-num><previously-shown start="2024"/><star-rating>
<value>1/2</value></star-rating><rating><value>PG</value></rating><new/></programme>
<programme channel="a" start="20250301110000"><title>caf\xc3\xa9 &amp; x</title></programme></tv>"""


def batches(file: Path) -> list[ProgrammeBatch]:
    feed = Feed(source=file.name, file=file, content_digest="", bytes=file.stat().st_size)
    return list(read_batches(FeedStream(feed, 1 << 30), 10))


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_former_failures(file: Path) -> None:
    contents = batches(file)
    assert "after" in [title for batch in contents for title in batch.programmes.column("title").to_pylist()]
    seen = sum(batch.programmes.num_rows + batch.rejects.num_rows for batch in contents)
    assert seen == 2


def mutated(chance: random.Random, seeds: list[bytes]) -> bytes:
    content = bytearray(chance.choice(seeds))
    for _ in range(chance.randint(1, 12)):
        place = chance.randrange(len(content) + 1)
        kind = chance.random()
        if kind < 0.4:
            content[place:place] = chance.choice(PIECES)
        elif kind < 0.6:
            del content[place : place + chance.randint(1, 60)]
        elif kind < 0.8 and place < len(content):
            content[place] = chance.randrange(256)
        else:
            start = chance.randrange(len(content) + 1)
            content[place:place] = content[start : start + chance.randint(1, 300)]
    return bytes(content)


NEIGHBOUR = """<programme channel="{}" start="20250301100000 +0100" stop="20250301110000 +0100">
<title lang="de">Größe</title><desc>Über</desc><credits><actor>Ann</actor></credits><category>c</category>
<icon src="p"/></programme>"""


def read_neighbours(file: Path, damaged: bytes) -> list[object]:
    """Returns all columns of the programmes before and after a damaged one."""
    before, after = (NEIGHBOUR.format(channel).encode() for channel in ("before", "after"))
    file.write_bytes(b"<tv>" + before + damaged + after + b"</tv>")
    contents: list[object] = []
    for batch in batches(file):
        details = {row.pop("row"): row for row in batch.details.to_pylist()}
        rows = enumerate(batch.programmes.to_pylist())
        contents += [(row, details.get(n)) for n, row in rows if row["channel"] in ("before", "after")]
    return contents


@pytest.mark.parametrize("count", [150, pytest.param(20_000, marks=pytest.mark.soak)])
@pytest.mark.timeout(3600)
def test_the_neighbours_of_a_damaged_programme_keep_every_column(tmp_path: Path, count: int) -> None:
    chance, file = random.Random(1), tmp_path / "g.xml"
    sound = RICH[RICH.index(b"<programme") : RICH.rindex(b"<programme")]
    expected = read_neighbours(file, sound)
    assert len(expected) == 2
    for number in range(count):
        assert read_neighbours(file, mutated(chance, [sound])) == expected, (number, file.read_bytes())


@pytest.mark.parametrize("count", [300, pytest.param(100_000, marks=pytest.mark.soak)])
@pytest.mark.timeout(3600)
def test_mutations_are_read_or_refused(tmp_path: Path, count: int) -> None:
    rng, file = random.Random(1), tmp_path / "mutated.xml"
    seeds = [RICH, *(file.read_bytes() for file in CORPUS)]
    for number in range(count):
        file.write_bytes(mutated(rng, seeds))
        try:
            for batch in batches(file):
                batch.programmes.validate(full=True)
                batch.details.validate(full=True)
                assert all(0 <= row < batch.programmes.num_rows for row in batch.details["row"].to_pylist())
                assert all(len(text) <= 200 for text in batch.rejects["excerpt"].to_pylist())
        except FeedError as error:
            assert "\n" not in str(error)  # noqa: PT017
        except Exception as error:
            raise AssertionError(f"mutation {number}: {file.read_bytes()!r}") from error
