"""Opens a guide as a byte stream that can be read twice: once for analysis, once for writing."""

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
from tasks.ingest.settings import IngestSettings
from tasks.ingest.sources.decompress import FeedStream
from tasks.ingest.sources.download import fetch
from tasks.ingest.sources.feeds import Feed, NamedFeed, source_of
from tasks.ingest.sources.resolve import resolve
from tasks.ingest.xmltv.prolog import UTF_16_CODECS

STANDARD = "-"


@dataclass
class Source:
    """XMLTV guide as a stream of uncompressed bytes; UTF-16 is read as UTF-8, and ``encode`` restores it."""

    feed: Feed  # file of the guide
    size_cap_bytes: int  # maximum size of the uncompressed guide
    zone: str  # time zone of times without a zone (``ingest.zones``); "" means UTC
    home_zone: str  # time zone of the channels, unless ``zone`` is the zone of a place
    codec: str = field(default="", init=False)  # codec of a UTF-16 file; "" for other encodings
    damage: str = field(default="", init=False)  # why reading stopped early; "" if it did not

    def __post_init__(self) -> None:
        head = FeedStream(self.feed, self.size_cap_bytes).head()
        if json_lines.matches(head):
            raise EnrichError(
                f"{self.feed.source}: JSON lines; expected XMLTV, into which categories can be inserted"
            )
        self.codec = UTF_16_CODECS.get(head[:2], "")

    def pieces(self) -> Iterator[bytes]:
        """Yields the guide in pieces of about 400 KiB.

        Raises:
            EnrichError: A UTF-16 file has invalid characters, so that its bytes could not be reproduced.
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
                raise EnrichError(
                    f"{self.feed.source}: not valid {self.codec.upper()} ({error}); convert it to UTF-8 "
                    "first (`iconv -c -f UTF-16 -t UTF-8`)"
                ) from error
        self.damage = stream.damage

    def encode(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Converts pieces of the (enriched) guide back to the encoding of the file."""
        if not self.codec:
            return pieces
        decoder = codecs.getincrementaldecoder("utf-8")()  # a piece may end within a character
        return (decoder.decode(piece).encode(self.codec) for piece in pieces)


@contextmanager
def open_source(
    reference: str, work: Path, settings: IngestSettings, home_zone: str = "UTC"
) -> Iterator[Source]:
    """Downloads a guide if necessary, and yields it as a Source.

    Args:
        reference: Path, URL, env:NAME (docs/feeds.md), or "-" for standard input.
        work: Folder for temporary files.
        settings: Settings for reading feeds.
        home_zone: Time zone of the home.

    Raises:
        FeedError: The guide does not exist or cannot be read.
        EnrichError: The reference names several guides, or the guide is not XMLTV.
    """
    if reference == STANDARD:
        with tempfile.NamedTemporaryFile(dir=work, prefix="stdin-", delete=False) as spool:
            shutil.copyfileobj(sys.stdin.buffer, spool)
        locations: list[str | NamedFeed] = [NamedFeed(location=spool.name, source="standard input")]
    else:
        locations = resolve([reference], settings.private_addresses)
    if len(locations) > 1:
        raise EnrichError(f"{reference}: {len(locations)} guides; name one guide and one output per call")
    (location,) = locations
    address = location.location if isinstance(location, NamedFeed) else location
    with fetch(address, work, settings, source_of(location)) as download:
        if len(download.feeds) > 1:
            names = ", ".join(feed.member for feed in download.feeds[:3])
            raise EnrichError(
                f"{reference}: a zip of {len(download.feeds)} guides ({names} …); unpack it first"
            )
        (feed,) = download.feeds
        yield Source(feed, settings.size_cap_bytes, settings.zone(feed.source), home_zone)
