"""Reads zip archives, including truncated ones.

The directory of a zip is at the end of the file, so it is missing if the file is truncated. Each member also
has a local header before its data; truncated files are read by these headers.

References:
    PKWARE. APPNOTE.TXT, .ZIP File Format Specification, sections 4.3.7 (local file header) and 4.3.9 (data
    descriptor).
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from tasks.ingest.sources.feeds import FeedError

MAGIC, HEADER_BYTES = b"PK\x03\x04", 30  # start and size of a local header, without name and extra field
STORED, DEFLATED = 0, 8  # compression methods
_READ_BYTES = 1 << 16
_DESCRIPTOR_BYTES = 24  # maximum size of the data descriptor, which follows a member of unknown size
_ZIP64 = 0xFFFFFFFF  # value of the size field if the size is in the extra field


def list_members(file: Path, source: str) -> list[str]:
    """Lists the files in a zip archive, sorted. Returns [] if ``file`` is not a zip archive.

    If the archive is truncated, the list ends where the archive ends.

    Raises:
        FeedError: The archive is empty, or the files in it cannot be listed.
    """
    with open(file, "rb") as handle:
        if handle.read(4) != MAGIC:
            return []
        try:
            with zipfile.ZipFile(handle) as archive:
                names = [info.filename for info in archive.infolist() if not info.is_dir()]
        except (zipfile.BadZipFile, NotImplementedError, OSError) as error:
            names = [member.name for member in read_members(handle) if not member.name.endswith("/")]
            if not names:
                raise FeedError(
                    f"{source}: damaged zip ({error}); nothing in it can be read; fetch it again"
                ) from error
    if not names:
        raise FeedError(f"{source}: an empty zip; expected a guide in it")
    return sorted(set(names))


class ZipMember(NamedTuple):
    """Name and position of a file in a zip archive, from its local header."""

    name: str  # path in the archive
    start: int  # offset of the compressed data in the archive
    method: int  # compression method: STORED or DEFLATED
    size: int  # compressed bytes, -1 if unknown


def read_members(handle: IO[bytes]) -> Iterator[ZipMember]:
    """Yields the unencrypted members of a zip from their local headers.

    Stops after a member whose end cannot be determined.
    """
    position = 0
    while True:
        handle.seek(position)
        head = handle.read(HEADER_BYTES)
        if len(head) < HEADER_BYTES or not head.startswith(MAGIC):
            return
        flags, method = struct.unpack_from("<HH", head, 6)
        size, _, name_length, extra_length = struct.unpack_from("<IIHH", head, 18)
        name = handle.read(name_length)
        if len(name) < name_length:
            return
        path = name.decode("utf-8" if flags & 0x800 else "cp437", "replace")
        start = position + HEADER_BYTES + name_length + extra_length
        member = ZipMember(path, start, method, -1 if flags & 8 or size == _ZIP64 else size)
        if not flags & 1 and method in (STORED, DEFLATED):
            yield member
        if member.size >= 0:
            position = start + size
            continue
        reader = MemberReader(handle, member)
        while reader.read(_READ_BYTES):
            pass
        if reader.decoder is None or not reader.decoder.eof:
            return  # the end of the member is unknown
        end = handle.seek(handle.tell() - len(reader.decoder.unused_data))
        if (gap_bytes := handle.read(_DESCRIPTOR_BYTES + len(MAGIC)).find(MAGIC)) < 0:
            return
        position = end + gap_bytes


class MemberReader(io.RawIOBase):
    """Reads the uncompressed data of a zip member as a stream.

    Attributes:
        decoder: The zlib decompressor; None for a member that is not compressed.
        damage: Reason why the data ends early; empty if it does not.
    """

    def __init__(self, handle: IO[bytes], member: ZipMember) -> None:
        handle.seek(member.start)
        self._handle, self._remaining_bytes = handle, member.size
        self.decoder = zlib.decompressobj(-15) if member.method == DEFLATED else None
        self._unconsumed = b""
        self.damage = ""

    def readable(self) -> bool:
        """Returns True, because the stream can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Reads uncompressed bytes into ``buffer``. Returns their number; 0 at the end of the member."""
        while not (self.decoder and self.decoder.eof):
            limit = len(buffer) if self._remaining_bytes < 0 else min(len(buffer), self._remaining_bytes)
            piece = self._unconsumed or self._handle.read(limit)
            if not self._unconsumed and self._remaining_bytes > 0:
                self._remaining_bytes -= len(piece)
            content = piece
            if self.decoder:
                try:
                    content = self.decoder.decompress(piece, len(buffer))
                except zlib.error as error:
                    self.damage = str(error)
                    return 0
                self._unconsumed = self.decoder.unconsumed_tail
            if content:
                buffer[: len(content)] = content
                return len(content)
            if not piece:  # and zlib has no more output
                self.damage = "" if self._remaining_bytes == 0 else "the file ends early"
                return 0
        return 0
