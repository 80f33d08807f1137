"""The uncompressed bytes of a feed; the compression is detected from magic bytes, not from the name.

Damaged compression ends the stream without an error: all bytes before the damage are yielded, and
``damage`` says what happened.
"""

import bz2
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import IO, Any

import pyarrow as pa

from tasks.ingest.sources import zip as zips
from tasks.ingest.sources.feeds import Feed, FeedError

PIECE = 1 << 14  # compressed bytes read at a time
BLOCK = 3 << 17  # uncompressed bytes of a block: at least (but for the last), and less than twice as many
Decompressor = Callable[[IO[bytes], Feed], Iterator[bytes]]


class Damaged(Exception):
    """The compressed data is damaged or ends early; what could be read was yielded before."""


class FeedStream:
    """Iterates over a feed's uncompressed bytes, in blocks of 384 to 768 KiB, up to the ``damage``."""

    def __init__(self, feed: Feed, size_cap_bytes: int) -> None:
        self.feed, self.size_cap_bytes = feed, size_cap_bytes
        self.position = self.produced = 0  # bytes of the file, and uncompressed
        self.damage = ""

    @property
    def share_read(self) -> float:
        """Of the file, 0 to 1."""
        return min(1.0, self.position / self.feed.bytes)

    def head(self) -> bytes:
        """The first block, without consuming it."""
        return next(iter(FeedStream(self.feed, self.size_cap_bytes)), b"")

    def __iter__(self) -> Iterator[bytes]:
        with open(self.feed.file, "rb") as handle:
            pieces = _decompress(handle, self.feed)
            while block := self._block(pieces, handle):
                self.produced += len(block)
                if self.produced > self.size_cap_bytes:
                    cap = f"{self.size_cap_bytes:,} bytes uncompressed (ingest.size_cap_bytes)"
                    raise FeedError(f"{self.feed.source}: larger than {cap}; nothing was stored")
                yield block
        if self.damage and not self.produced:
            raise self.nothing_readable()

    def nothing_readable(self) -> FeedError:
        """The error for a feed of which the damage leaves nothing."""
        with open(self.feed.file, "rb") as handle:
            head = handle.read(1 << 20)
        advice = "fetch it again"
        if head.count(b"\n") == head.count(b"\r\n") >= 8:  # compressed bytes hold bare ones, one in 256
            why = "it was sent as text (a carriage return stands before every line feed)"
            advice = f"{why}: fetch it again as binary"
        problem = f"damaged compression ({self.damage}), nothing in it can be read"
        return FeedError(f"{self.feed.source}: {problem}; {advice}")

    def _block(self, pieces: Iterator[bytes], handle: IO[bytes]) -> bytes:
        found, size = [], 0
        try:
            while size < BLOCK and (piece := next(pieces, None)) is not None:
                found.append(piece)
                size += len(piece)
                self.position = handle.tell()
        except Damaged as error:
            self.damage = str(error)
        return b"".join(found)


def _decompress(handle: IO[bytes], feed: Feed) -> Iterator[bytes]:
    """The uncompressed bytes of a file or member of a zip; Damaged is raised after all that can be read."""
    magic = handle.peek(8)[:8]  # pyright: ignore[reportAttributeAccessIssue]
    return next((read for start, read in FORMATS.items() if magic.startswith(start)), _plain)(handle, feed)


def _plain(handle: IO[bytes], feed: Feed) -> Iterator[bytes]:
    return iter(lambda: handle.read1(BLOCK), b"")  # pyright: ignore[reportAttributeAccessIssue]


def _gzip(handle: IO[bytes], feed: Feed) -> Iterator[bytes]:
    """All gzip members, up to the very byte of the damage (Python's gzip module drops the whole block)."""
    decoder = zlib.decompressobj(31)
    while piece := handle.read(PIECE):
        while piece:
            if decoder.eof:
                piece = piece.lstrip(b"\0")  # padding between members
                if not piece:
                    break
                decoder = zlib.decompressobj(31)
            before = decoder.copy()
            try:
                yield decoder.decompress(piece, BLOCK)
            except zlib.error as error:
                with suppress(zlib.error):
                    for place in range(len(piece)):
                        yield before.decompress(piece[place : place + 1])
                raise Damaged(str(error)) from error
            piece = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
    if not decoder.eof:
        yield decoder.flush()
        raise Damaged("the file ends early")


def _streams(new_decoder: Callable[[], Any]) -> Decompressor:
    """Streams of bzip2 or xz one after another, zeros between them skipped (bz2.open stops there)."""

    def read(handle: IO[bytes], feed: Feed) -> Iterator[bytes]:
        decoder = new_decoder()
        try:
            while piece := handle.read(PIECE):
                while piece or not (decoder.eof or decoder.needs_input):
                    if decoder.eof:
                        piece = piece.lstrip(b"\0")
                        if not piece:
                            break
                        decoder = new_decoder()
                    yield decoder.decompress(piece, BLOCK)
                    piece = decoder.unused_data if decoder.eof else b""
        except (OSError, lzma.LZMAError) as error:
            raise Damaged(str(error)) from error
        if not decoder.eof:
            raise Damaged("the file ends early")

    return read


def _zstd(handle: IO[bytes], feed: Feed) -> Iterator[bytes]:
    try:
        with pa.CompressedInputStream(pa.PythonFile(handle, "r"), "zstd") as file:
            yield from iter(lambda: file.read(PIECE), b"")  # an error loses the whole read
    except OSError as error:
        raise Damaged(str(error)) from error


def _zip(handle: IO[bytes], feed: Feed) -> Iterator[bytes]:
    try:
        archive = zipfile.ZipFile(handle)
    except (zipfile.BadZipFile, NotImplementedError):  # its end is missing
        found = next(member for member in zips.members_of(handle) if member.name == feed.member)
        reader = zips.MemberReader(handle, found)
        try:
            yield from _member(io.BufferedReader(reader), feed)
        except Damaged as error:
            raise Damaged(reader.damage or str(error)) from error
        if reader.damage:
            raise Damaged(reader.damage) from None
        return
    try:
        with archive, archive.open(feed.member) as member:
            yield from _member(member, feed)
    except (RuntimeError, KeyError) as error:  # zipfile's errors for a password and for a missing member
        raise FeedError(f"{feed.source}: {error}; expected a zip of guides without password") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, lzma.LZMAError) as error:
        raise Damaged(str(error)) from error


def _member(member: IO[bytes], feed: Feed) -> Iterator[bytes]:
    if member.peek(8)[:4] == zips.MAGIC:  # pyright: ignore[reportAttributeAccessIssue]
        raise FeedError(f"{feed.source}: a zip inside a zip; unpack the outer one")
    return _decompress(member, feed)


FORMATS: Mapping[bytes, Decompressor] = {
    b"\x1f\x8b": _gzip,
    b"BZh": _streams(bz2.BZ2Decompressor),
    b"\xfd7zXZ\x00": _streams(lzma.LZMADecompressor),
    b"(\xb5/\xfd": _zstd,
    zips.MAGIC: _zip,
}
