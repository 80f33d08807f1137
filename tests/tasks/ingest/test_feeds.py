import bz2
import gzip
import io
import lzma
import os
import re
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from guides import NOW, guide, locations, read, real_data, rows

from storage.catalogue.connection import Catalogue
from tasks.ingest.check import check_feeds
from tasks.ingest.ingest import ingest_feeds
from tasks.ingest.results import Failure, FeedResult
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.feeds import Feed, FeedError
from tasks.ingest.sources.resolve import resolve


def zstd(content: bytes) -> bytes:
    return pa.Codec("zstd").compress(content, asbytes=True)


def zipped(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return packed.getvalue()


PACKS = {"bzip2": bz2.compress, "gzip": gzip.compress, "plain": bytes, "xz": lzma.compress, "zstd": zstd}


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_formats_are_detected_from_bytes(tmp_path: Path, pack) -> None:
    file = tmp_path / "guide.dat"  # a name that says nothing
    file.write_bytes(pack(guide(programmes=20)))
    assert read(tmp_path, file)[0].counts.stored == 20


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress], ids=["gzip", "xz", "bzip2"])
@pytest.mark.parametrize("padding", [0, 4, 100_000])  # xz allows zeros, in fours; some tools append them
def test_concatenated_streams(tmp_path: Path, pack, padding: int) -> None:
    content, zeros = guide(programmes=20), b"\0" * padding
    (tmp_path / "g").write_bytes(pack(content[:700]) + zeros + pack(content[700:]) + zeros)
    outcome = read(tmp_path, tmp_path / "g")[0]
    assert (outcome.counts.stored, outcome.reasons) == (20, {})
    (tmp_path / "h").write_bytes(pack(content[:700]) + zeros)  # cut before it was compressed
    assert read(tmp_path, tmp_path / "h")[0].reasons == {"truncated": 1}


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, pytest.param(lzma.compress, marks=pytest.mark.slow), bz2.compress, zstd],
    ids=["gzip", "xz", "bzip2", "zstd"],
)
def test_a_truncated_compressed_file_is_read_up_to_the_cut(tmp_path: Path, pack) -> None:
    noise = [
        f'<programme channel="one" start="20250301"><title>{os.urandom(40).hex()}</title></programme>'
        for _ in range(20_000)
    ]
    packed = pack(guide(*noise))
    (tmp_path / "g").write_bytes(packed[: len(packed) * 2 // 3])
    outcome = read(tmp_path, tmp_path / "g")[0]
    assert outcome.reasons == {"damaged": 1}
    # bzip2 gives whole blocks of 900 kB only
    assert outcome.counts.stored > (20_000 // 4 if pack is bz2.compress else 20_000 * 0.6)


def test_a_stream_can_be_read_twice(tmp_path: Path) -> None:
    (tmp_path / "g.gz").write_bytes(gzip.compress(guide())[:-8])
    feed = Feed(source="g", file=tmp_path / "g.gz", content_digest="", bytes=1)
    stream = FeedStream(feed, len(guide()))
    first = list(stream), stream.size, stream.position, stream.damage
    assert first == (list(stream), stream.size, stream.position, stream.damage) and stream.damage


def test_gzip_is_read_up_to_the_damaged_byte(tmp_path: Path) -> None:
    content = guide(programmes=20)
    packed = gzip.compress(content, compresslevel=0)  # stored as it is: the damage is where we put it
    (tmp_path / "g.gz").write_bytes(packed[: packed.index(b"Show 15") + 3])
    assert read(tmp_path, tmp_path / "g.gz")[0].counts.stored == 15


def test_formats_of_a_zip_and_of_its_members_are_detected_from_bytes(tmp_path: Path) -> None:
    packs = {"../../a.xml": bytes} | {f"{name}.xml": pack for name, pack in PACKS.items() if name != "plain"}
    with zipfile.ZipFile(tmp_path / "guide.dat", "w") as archive:
        for number, (name, pack) in enumerate(packs.items()):
            archive.writestr(name, pack(guide(programmes=3 + number)))
    check_feeds([str(tmp_path / "guide.dat")], IngestSettings())
    outcomes = read(tmp_path, tmp_path / "guide.dat")
    assert [(outcome.source.partition("!")[2], outcome.counts.stored) for outcome in outcomes] == [
        (name, 3 + number) for number, name in enumerate(packs)
    ]
    assert sorted(os.listdir(tmp_path)) == ["catalogue.duckdb", "guide.dat", "status.json"]


OTHERS = {
    "__MACOSX/._guide.xml": b"\0\5\x16\7\0\2\0\0Mac OS X",
    "__MACOSX/": b"",
    "readme.txt": b"read me",
    "settings.xml": b"<settings><channel id='a'/></settings>",
    "folder/.DS_Store": b"\0\0\0\1Bud1",
    "logo.png": b"\x89PNG\r\n",
}


def test_other_members_of_a_zip_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "g.zip").write_bytes(zipped({**OTHERS, "guide.xml": guide(programmes=3)}))
    check_feeds([str(tmp_path / "g.zip")], IngestSettings())
    (outcome,) = read(tmp_path, tmp_path / "g.zip")
    assert (outcome.source, outcome.counts.stored) == (f"{tmp_path}/g.zip", 3)
    assert sorted(outcome.skipped) == sorted(OTHERS.keys() - {"__MACOSX/"})
    assert "skipped, not guides: __MACOSX/._guide.xml" in str(outcome)
    (tmp_path / "h.zip").write_bytes(
        zipped({**OTHERS, "a": guide(programmes=2), "b.txt": guide(programmes=4)})
    )
    outcomes = read(tmp_path, tmp_path / "h.zip")  # whatever their names
    assert [(each.source.partition("!")[2], each.counts.stored) for each in outcomes] == [
        ("a", 2),
        ("b.txt", 4),
    ]
    assert [len(each.skipped) for each in outcomes] == [len(OTHERS) - 1, 0]


def test_a_bad_member_does_not_affect_others(tmp_path: Path) -> None:
    """The bad members are damaged, too large, empty, encrypted, or a zip."""
    large = guide() + b"<!-- " + b" " * 300_000 + b" -->"
    members = {
        "1.xml": guide(programmes=3),
        "2.xml.gz": b"\x1f\x8b\x08\x00nonsense that is no deflate",
        "3.xml": large,
        "4.xml": b"",
        "5.xml": guide(programmes=5),
        "6.xml": zipped({"a.xml": guide()}),
        "7.xml": guide(programmes=7),
    }
    packed = bytearray(zipped(members))
    packed[packed.rindex(b"PK\x01\x02", 0, packed.rindex(b"5.xml")) + 8] |= 1  # encrypted, says the list
    (tmp_path / "g.zip").write_bytes(packed)
    check_feeds([str(tmp_path / "g.zip")], IngestSettings())
    settings, file = IngestSettings(size_cap_bytes=200_000), str(tmp_path / "g.zip")
    with Catalogue.open(tmp_path) as catalogue:
        events = list(ingest_feeds(catalogue, [file], settings, clock=lambda: 0.0, now=lambda: NOW))
    stored = {each.source[-5:]: each.counts.stored for each in events if isinstance(each, FeedResult)}
    failed = {each.source.partition("!")[2]: str(each) for each in events if isinstance(each, Failure)}
    assert stored == {"1.xml": 3, "7.xml": 7}
    assert list(failed) == ["2.xml.gz", "3.xml", "4.xml", "5.xml", "6.xml"]
    problems = ("damaged", "larger", "empty", "password")
    assert all(problem in text for problem, text in zip(problems, failed.values()))
    with pytest.raises(FeedError, match=r"g\.zip!5\.xml.*the feed is listed in ingest\.required"):
        read(tmp_path, tmp_path / "g.zip", required=("*5.xml",))


def test_an_unreadable_zip_fails(tmp_path: Path) -> None:
    (tmp_path / "g.zip").write_bytes(zipped({"1.xml": b"", "2.xml": b" "}))
    with pytest.raises(FeedError, match=r"none of the 2 feeds can be read: .*1\.xml: empty.*2\.xml: empty"):
        read(tmp_path, tmp_path / "g.zip")
    with pytest.raises(FeedError, match=r"1\.xml: empty"):
        check_feeds([str(tmp_path / "g.zip")], IngestSettings())


def test_the_report_of_a_zip_made_on_a_mac(tmp_path: Path) -> None:
    (outcome,) = read(tmp_path, real_data() / "reports/41j-mac.zip")
    assert outcome.counts.stored == 1
    assert set(outcome.skipped) == {"__MACOSX/._guide.xml", "readme.txt"}


class Unseekable(io.BytesIO):
    """Makes zipfile write the sizes of members after their data."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise io.UnsupportedOperation


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        (io.BytesIO, zipfile.ZIP_STORED),
        (io.BytesIO, zipfile.ZIP_DEFLATED),
        (Unseekable, zipfile.ZIP_DEFLATED),
    ],
)
def test_a_truncated_zip_is_read_up_to_the_cut(tmp_path: Path, kind: type[io.BytesIO], method: int) -> None:
    packed, noise = kind(), os.urandom(30_000).hex().encode()  # does not compress
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr("first.xml", guide(programmes=3))
        archive.writestr("readme.txt", b"no guide")
        archive.writestr("second.xml.gz", gzip.compress(guide(programmes=4)))
        archive.writestr(
            "third.xml",
            guide(programmes=20).replace(b"</tv>", b"") + b"<!-- " + noise + b" -->" + guide(programmes=1),
        )
    (tmp_path / "g.zip").write_bytes(packed.getvalue()[:-20_000])
    outcomes = read(tmp_path, tmp_path / "g.zip")
    names = [outcome.source.partition("!")[2] for outcome in outcomes]
    assert names == ["first.xml", "second.xml.gz", "third.xml"]
    counts = [outcome.counts for outcome in outcomes]
    assert [(count.seen, count.stored, count.rejected) for count in counts] == [
        (3, 3, 0),
        (4, 4, 0),
        (21, 20, 1),
    ]


def test_a_truncated_zip_of_one_guide(tmp_path: Path) -> None:
    content = guide(programmes=20)
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
        archive.writestr("a.xml", content)
    packed = (tmp_path / "whole.zip").read_bytes()
    (tmp_path / "g.zip").write_bytes(packed[: packed.index(b"Show 15") + 3])
    (outcome,) = read(tmp_path, tmp_path / "g.zip")
    assert (outcome.source, outcome.counts.stored) == (f"{tmp_path}/g.zip", 15)


def test_resolve_paths_globs_directories(tmp_path: Path) -> None:
    for name in ("b.xml", "a.xml.gz", "notes.md", "[K8].xml"):
        (tmp_path / name).write_bytes(b"x")
    a, b, odd = (str(tmp_path / name) for name in ("a.xml.gz", "b.xml", "[K8].xml"))
    assert locations([str(tmp_path)]) == [odd, a, b]
    assert locations([str(tmp_path / "*.xml*"), b, odd]) == [odd, a, b]
    assert locations([odd, "https://example.org/x.xml"]) == [odd, "https://example.org/x.xml"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.xml", None, "no such file"),
        ("none*.xml", None, "the pattern matches no file"),
        ("empty.xml", b"", "empty file"),
        ("blank.xml", b" \n\n ", "white space only"),
        ("nothing.xml.gz", gzip.compress(b"", mtime=0), "white space only"),
        ("text.xml", b"hello, I am no guide", "not XML; it starts with 'hello, I am no guide'"),
        ("data.json", b'{"programmes": []}', "not XML"),
        ("cut.xml", b'<?xml version="1.0"?><!-- ', "not XML"),
        ("page.html", b"<!DOCTYPE html><html><body>404</body></html>", "not XMLTV; its root is <html>"),
        ("feed.rss", b'<?xml version="1.0"?><!-- c --><rss version="2.0"></rss>',
         "not XMLTV; its root is <rss>"),
        ("bad.gz", b"\x1f\x8b\x08\x00nonsense that is no deflate", "nothing in it can be read"),
        ("bad.zip", b"PK\x03\x04nonsense", "damaged zip"),
        ("text.zip", zipped({"a.txt": b"", "b.md": b""}), "no guide in this zip of 2 files (a.txt, b.md)"),
        ("html.zip", zipped({"a.xml": b"<html/>", "b.xml": b"<rss/>"}), "no guide in this zip of 2 files"),
        ("zip.zip", zipped({"a.zip": zipped({"a.xml": guide()})}), "a zip inside a zip"),
        ("packed.gz", gzip.compress(gzip.compress(b"<tv/>", mtime=0), mtime=0), "not XML"),
    ],
)  # fmt: skip
def test_unusable_feeds_give_one_line_and_change_nothing(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    (tmp_path / "good.xml").write_bytes(guide(programmes=3))
    read(tmp_path, tmp_path / "good.xml")
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(FeedError, match=".*" + re.escape(message)) as caught:
        read(tmp_path, tmp_path / name)
    assert "\n" not in str(caught.value) and name in str(caught.value)
    with pytest.raises(FeedError) as before:  # the check before a run gives the same error
        check_feeds([str(tmp_path / name)], IngestSettings())
    assert str(before.value) == str(caught.value)
    assert rows(tmp_path, "SELECT (SELECT count(*) FROM feeds), (SELECT count(*) FROM programmes)") == [
        (1, 3)
    ]


def test_an_empty_directory_and_no_feed_at_all(tmp_path: Path) -> None:
    with pytest.raises(FeedError, match="no guide in this directory"):
        resolve([str(tmp_path)])
    with pytest.raises(FeedError, match="no feed given"):
        resolve([])


def test_an_empty_guide_is_a_guide(tmp_path: Path) -> None:
    (tmp_path / "g.xml").write_bytes(b"<tv/>")
    (tmp_path / "h.xml").write_bytes(b'<!DOCTYPE tv SYSTEM "xmltv.dtd"><programmes>\n</programmes>')
    outcomes = read(tmp_path, tmp_path / "g.xml", tmp_path / "h.xml")
    assert [outcome.counts.seen for outcome in outcomes] == [0, 0]


def test_size_cap(tmp_path: Path) -> None:
    (tmp_path / "bomb.xml.gz").write_bytes(gzip.compress(guide() + b" " * 5_000_000))
    with pytest.raises(FeedError, match="larger than 1,000,000 bytes uncompressed"):
        read(tmp_path, tmp_path / "bomb.xml.gz", size_cap_bytes=1_000_000)
