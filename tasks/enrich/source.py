"""Opens a guide as a byte stream that is read twice: to survey its programmes, and to write the copy."""

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
from tasks.ingest.sources.feeds import Feed, NamedFeed
from tasks.ingest.sources.resolve import resolve
from tasks.ingest.xmltv.prolog import UTF_16_CODECS

STANDARD_STREAM = "-"  # standard input or output


@dataclass
class Source:
    """XMLTV guide as a stream of uncompressed bytes. UTF-16 is read as UTF-8; ``encode`` converts it back."""

    feed: Feed  # file of the guide
    size_cap_bytes: int  # maximum size of the uncompressed guide
    zone: str  # time zone of times without a zone (``ingest.zones``); "" means UTC
    home_zone: str  # time zone of the channels, unless ``zone`` is a regional zone such as Europe/Paris
    codec: str = field(default="", init=False)  # codec of a UTF-16 file; "" for other encodings
    damage: str = field(default="", init=False)  # why reading stopped before the end; "" after complete reads

    def __post_init__(self) -> None:
        first_bytes = FeedStream(self.feed, self.size_cap_bytes).head()
        if json_lines.matches(first_bytes):
            raise EnrichError(
                f"{self.feed.source} is a file of JSON lines; name an XMLTV file, into which elements can be "
                "inserted"
            )
        self.codec = UTF_16_CODECS.get(first_bytes[:2], "")

    def pieces(self) -> Iterator[bytes]:
        """Yields the bytes of the guide in pieces of about 400 KiB.

        Raises:
            EnrichError: A UTF-16 file has invalid characters, which ``encode`` could not restore.
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
        """Converts pieces of the enriched guide to the encoding of the file."""
        if not self.codec:
            return pieces
        decoder = codecs.getincrementaldecoder("utf-8")()  # a piece may end within a character
        return (decoder.decode(piece).encode(self.codec) for piece in pieces)


@contextmanager
def open_source(
    reference: str, work: Path, settings: IngestSettings, home_zone: str = "UTC"
) -> Iterator[Source]:
    """Opens a guide as a Source; a guide at a URL is downloaded first.

    Args:
        reference: Path, URL, env:NAME (docs/feeds.md), or "-" for standard input.
        work: Folder for temporary files, such as the download.
        settings: Settings for reading feeds.
        home_zone: Time zone of the home.

    Raises:
        FeedError: The guide does not exist or cannot be read.
        EnrichError: The reference names several guides, or the guide is not XMLTV.
    """
    if reference == STANDARD_STREAM:
        with tempfile.NamedTemporaryFile(dir=work, prefix="stdin-", delete=False) as spool_file:
            shutil.copyfileobj(sys.stdin.buffer, spool_file)
        named_feeds = [NamedFeed(location=spool_file.name, source="standard input")]
    else:
        named_feeds = resolve([reference], settings.private_addresses)
    if len(named_feeds) > 1:
        raise EnrichError(
            f"{reference} stands for {len(named_feeds)} guides; run the command for one guide at a time"
        )
    (named_feed,) = named_feeds
    with fetch(named_feed.location, work, settings, named_feed.source) as download:
        if len(download.feeds) > 1:
            names = ", ".join(feed.member for feed in download.feeds[:3])
            raise EnrichError(
                f"{reference} is a zip of {len(download.feeds)} guides ({names} …); unpack it, and run the "
                "command for one guide at a time"
            )
        (feed,) = download.feeds
        yield Source(feed, settings.size_cap_bytes, settings.zone(feed.source), home_zone)
