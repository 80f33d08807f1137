"""A guide as bytes that can be read twice: once to see what it says, once to write it."""

import codecs
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tasks.enrich.errors import EnrichError
from tasks.ingest import json_lines
from tasks.ingest.encoding import Encoding
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.download import Limits, fetch
from tasks.ingest.sources.feeds import Feed, Named, source_of
from tasks.ingest.sources.resolve import resolve
from tasks.ingest.xmltv.prolog import read_prolog

STANDARD = "-"
_TWO_BYTES = {codecs.BOM_UTF16_LE: "utf-16-le", b"<\0": "utf-16-le"}
_TWO_BYTES |= {codecs.BOM_UTF16_BE: "utf-16-be", b"\0<": "utf-16-be"}


@dataclass
class Source:
    """An XMLTV guide, uncompressed; of two-byte encodings as UTF-8, of which ``encode`` makes them again."""

    feed: Feed
    size_cap_bytes: int
    zone: str  # of times that name none (``ingest.zones``); empty is UTC
    home_zone: str  # of channels, unless ``zone`` is that of a place
    codec: str = field(default="", init=False)
    damage: str = field(default="", init=False)  # why nothing after the last byte can be read; else empty

    def __post_init__(self) -> None:
        head = FeedStream(self.feed, self.size_cap_bytes).head()
        if json_lines.matches(head):
            raise EnrichError(
                f"{self.feed.source}: JSON lines; expected XMLTV, which has a place for categories"
            )
        self.codec = _TWO_BYTES.get(head[:2], "")

    def pieces(self) -> Iterator[bytes]:
        """The bytes, some 400 KiB at a time.

        Raises:
            EnrichError: A file of two-byte characters is damaged, so that it could not be written as it was.
        """
        stream = FeedStream(self.feed, self.size_cap_bytes)
        if not self.codec:
            yield from stream
        else:
            decoder = codecs.getincrementaldecoder(self.codec)()
            try:
                for piece in stream:
                    yield decoder.decode(piece).encode()
                yield decoder.decode(b"", True).encode()
            except UnicodeError as error:
                problem = f"not valid {self.codec.upper()} ({error})"
                advice = "convert it to UTF-8 first (`iconv -c -f UTF-16 -t UTF-8`)"
                raise EnrichError(f"{self.feed.source}: {problem}; {advice}") from error
        self.damage = stream.damage

    def encode(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Pieces in the file's own encoding."""
        if not self.codec:
            return pieces
        decoder = codecs.getincrementaldecoder("utf-8")()  # a piece may end within a character
        return (decoder.decode(piece).encode(self.codec) for piece in pieces)

    def body(self) -> tuple[Encoding, int, Iterator[bytes]]:
        """The encoding that the bytes are in, the length of the head up to the root's start tag, and the
        bytes after it; FeedError where it is no XMLTV.
        """
        taken: list[bytes] = []

        def noted() -> Iterator[bytes]:
            for piece in self.pieces():
                taken.append(piece)
                yield piece

        prolog, rest = read_prolog(noted(), self.feed.source)
        first = next(rest)
        head = sum(map(len, taken)) - len(first)

        def after() -> Iterator[bytes]:
            yield first
            for piece in rest:
                taken.clear()
                yield piece

        return Encoding(prolog.encoding, self.pieces), head, after()


@contextmanager
def open_source(given: str, work: Path, settings: IngestSettings, home_zone: str = "UTC") -> Iterator[Source]:
    """Opens one guide: a file, a URL, a reference (docs/feeds.md), or - for standard input; for a home in
    ``home_zone``.

    Raises:
        FeedError: There is no such guide, or it cannot be read.
        EnrichError: It is several guides, or none in XMLTV.
    """
    if given == STANDARD:
        with tempfile.NamedTemporaryFile(dir=work, prefix="stdin-", delete=False) as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
        locations: list[str | Named] = [Named(location=spool.name, source="standard input")]
    else:
        locations = resolve([given], settings.private_addresses)
    if len(locations) > 1:
        raise EnrichError(f"{given}: {len(locations)} guides; name one, and each output of its own")
    (location,) = locations
    address = location.location if isinstance(location, Named) else location
    limits = Limits.of(settings)
    with fetch(address, work, limits, source_of(location)) as fetched:
        if len(fetched.feeds) > 1:
            names = ", ".join(feed.member for feed in fetched.feeds[:3])
            raise EnrichError(f"{given}: a zip of {len(fetched.feeds)} guides ({names} …); unpack it first")
        (feed,) = fetched.feeds
        yield Source(feed, settings.size_cap_bytes, settings.zone(feed.source), home_zone)
