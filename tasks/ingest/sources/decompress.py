"""Decompresses feeds. The compression is detected from the first bytes of the file, not from its name.

If the data is damaged, the stream yields all bytes before the damage and ends without an error;
``FeedStream.damage`` contains the reason.
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

READ_BYTES = 1 << 14  # compressed bytes per read
BLOCK_BYTES = 3 << 17  # minimum uncompressed bytes of a block (except the last); the maximum is twice as high
Decompressor = Callable[[IO[bytes], Feed], Iterator[bytes]]


class DamagedData(Exception):
    """Error: compressed data is damaged or ends early. All bytes before the damage were yielded."""


class FeedStream:
    """Iterates over the uncompressed bytes of a feed in blocks of 384 to 768 KiB, up to the first damage.

    Attributes:
        position: Number of compressed bytes that were read from the file.
        size: Number of uncompressed bytes that were yielded.
        damage: Reason why the stream ended early; empty if it did not.
    """

    def __init__(self, feed: Feed, size_cap_bytes: int) -> None:
        self.feed, self.size_cap_bytes = feed, size_cap_bytes
        self.position = self.size = 0
        self.damage = ""

    @property
    def share_read(self) -> float:
        """Returns the share of the file that has been read, 0 to 1."""
        return min(1.0, self.position / self.feed.bytes)

    def head(self) -> bytes:
        """Returns the first block of uncompressed bytes, which later iterations yield again."""
        return next(iter(FeedStream(self.feed, self.size_cap_bytes)), b"")

    def __iter__(self) -> Iterator[bytes]:
        self.position = self.size = 0
        self.damage = ""
        with open(self.feed.file, "rb") as handle:
            pieces = _decompress(handle, self.feed)
            while block := self._read_block(pieces, handle):
                self.size += len(block)
                if self.size > self.size_cap_bytes:
                    raise FeedError(
                        f"{self.feed.source}: larger than {self.size_cap_bytes:,} bytes uncompressed "
                        "(ingest.size_cap_bytes); nothing was stored"
                    )
                yield block
        if self.damage and not self.size:
            raise self.unreadable_error()

    def unreadable_error(self) -> FeedError:
        """Returns the error for a feed of which no byte can be decompressed."""
        with open(self.feed.file, "rb") as handle:
            head = handle.read(1 << 20)
        advice = "fetch it again"
        # intact binary data also has line feeds without a carriage return
        if head.count(b"\n") == head.count(b"\r\n") >= 8:
            advice = (
                "it was sent as text (each line feed follows a carriage return): fetch it again as binary"
            )
        return FeedError(
            f"{self.feed.source}: damaged compression ({self.damage}), nothing in it can be read; {advice}"
        )

    def _read_block(self, pieces: Iterator[bytes], handle: IO[bytes]) -> bytes:
        """Joins pieces to a block of at least BLOCK_BYTES; updates ``position`` and ``damage``."""
        block, size = [], 0
        try:
            while size < BLOCK_BYTES and (piece := next(pieces, None)) is not None:
                block.append(piece)
                size += len(piece)
                self.position = handle.tell()
        except DamagedData as error:
            self.damage = str(error)
        return b"".join(block)


def _decompress(handle: IO[bytes], feed: Feed) -> Iterator[bytes]:
    """Yields the uncompressed bytes of a file or zip member. Raises DamagedData after all readable bytes."""
    magic = handle.peek(8)[:8]  # pyright: ignore[reportAttributeAccessIssue]
    decompress = next((FORMATS[start] for start in FORMATS if magic.startswith(start)), _read_uncompressed)
    return decompress(handle, feed)


def _read_uncompressed(handle: IO[bytes], feed: Feed) -> Iterator[bytes]:
    return iter(lambda: handle.read1(BLOCK_BYTES), b"")  # pyright: ignore[reportAttributeAccessIssue]


def _decompress_gzip(handle: IO[bytes], feed: Feed) -> Iterator[bytes]:
    """Decompresses all gzip members up to a damaged byte. Python's gzip would lose the damaged block."""
    decoder = zlib.decompressobj(31)
    while piece := handle.read(READ_BYTES):
        while piece:
            if decoder.eof:
                piece = piece.lstrip(b"\0")  # padding between members
                if not piece:
                    break
                decoder = zlib.decompressobj(31)
            snapshot = decoder.copy()
            try:
                yield decoder.decompress(piece, BLOCK_BYTES)
            except zlib.error as error:
                with suppress(zlib.error):
                    for position in range(len(piece)):
                        yield snapshot.decompress(piece[position : position + 1])
                raise DamagedData(str(error)) from error
            piece = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
    if not decoder.eof:
        yield decoder.flush()
        raise DamagedData("the file ends early")


def _make_decompressor(new_decoder: Callable[[], Any]) -> Decompressor:
    """Returns a function that decompresses concatenated bzip2 or xz streams.

    The function skips zeros between two streams; ``bz2.open`` would stop at them.
    """

    def decompress(handle: IO[bytes], feed: Feed) -> Iterator[bytes]:
        decoder = new_decoder()
        try:
            while piece := handle.read(READ_BYTES):
                while piece or not (decoder.eof or decoder.needs_input):
                    if decoder.eof:
                        piece = piece.lstrip(b"\0")
                        if not piece:
                            break
                        decoder = new_decoder()
                    yield decoder.decompress(piece, BLOCK_BYTES)
                    piece = decoder.unused_data if decoder.eof else b""
        except (OSError, lzma.LZMAError) as error:
            raise DamagedData(str(error)) from error
        if not decoder.eof:
            raise DamagedData("the file ends early")

    return decompress


def _decompress_zstd(handle: IO[bytes], feed: Feed) -> Iterator[bytes]:
    try:
        with pa.CompressedInputStream(pa.PythonFile(handle, "r"), "zstd") as file:
            yield from iter(lambda: file.read(READ_BYTES), b"")  # an error loses the bytes of this read
    except OSError as error:
        raise DamagedData(str(error)) from error


def _decompress_zip(handle: IO[bytes], feed: Feed) -> Iterator[bytes]:
    try:
        archive = zipfile.ZipFile(handle)
    except (zipfile.BadZipFile, NotImplementedError):  # a truncated zip has no directory at its end
        entry = next(entry for entry in zips.read_members(handle) if entry.name == feed.member)
        reader = zips.MemberReader(handle, entry)
        try:
            yield from _decompress_member(io.BufferedReader(reader), feed)
        except DamagedData as error:
            raise DamagedData(reader.damage or str(error)) from error
        if reader.damage:
            raise DamagedData(reader.damage) from None
        return
    try:
        with archive, archive.open(feed.member) as member:
            yield from _decompress_member(member, feed)
    except (RuntimeError, KeyError) as error:  # zipfile's errors for a password and for a missing member
        raise FeedError(f"{feed.source}: {error}; expected a zip of guides without password") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, lzma.LZMAError) as error:
        raise DamagedData(str(error)) from error


def _decompress_member(member: IO[bytes], feed: Feed) -> Iterator[bytes]:
    if member.peek(8)[:4] == zips.MAGIC:  # pyright: ignore[reportAttributeAccessIssue]
        raise FeedError(f"{feed.source}: a zip inside a zip; unpack the outer one")
    return _decompress(member, feed)


FORMATS: Mapping[bytes, Decompressor] = {
    b"\x1f\x8b": _decompress_gzip,
    b"BZh": _make_decompressor(bz2.BZ2Decompressor),
    b"\xfd7zXZ\x00": _make_decompressor(lzma.LZMADecompressor),
    b"(\xb5/\xfd": _decompress_zstd,
    zips.MAGIC: _decompress_zip,
}
