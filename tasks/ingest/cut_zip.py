"""A zip whose end is missing: its list of members stood there, but each member also has a header of its own before its bytes.

References:
    PKWARE. APPNOTE.TXT, .ZIP File Format Specification, sections 4.3.7 (local file header) and 4.3.9 (data descriptor).
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple

HEADER, START = b"PK\x03\x04", 30  # of a member, and the bytes of its header before its name
STORED, DEFLATED = 0, 8
_PIECE = 1 << 16
_DESCRIPTOR = 24  # bytes at most behind a member whose size its header does not tell
_LARGE = 0xFFFFFFFF  # a size that is told elsewhere


class CutMember(NamedTuple):
    """A member as its own header tells of it.

    Attributes:
        name: Of the file.
        start: Where its bytes begin.
        method: STORED or DEFLATED.
        size: Compressed bytes; -1 where the header does not tell.
    """

    name: str
    start: int
    method: int
    size: int


def members_of(handle: IO[bytes]) -> Iterator[CutMember]:
    """The members from the first byte on, up to the one that is cut or whose end cannot be told; encrypted ones are passed over."""
    position = 0
    while True:
        handle.seek(position)
        head = handle.read(START)
        if len(head) < START or not head.startswith(HEADER):
            return
        flags, method = struct.unpack_from("<HH", head, 6)
        size, _, name_length, extra_length = struct.unpack_from("<IIHH", head, 18)
        name = handle.read(name_length)
        member = CutMember(
            name=name.decode("utf-8" if flags & 0x800 else "cp437", "replace"),
            start=position + START + name_length + extra_length,
            method=method,
            size=-1 if flags & 8 or size == _LARGE else size,
        )
        if len(name) < name_length:
            return
        if not flags & 1 and method in (STORED, DEFLATED):
            yield member
        end = member.start + member.size if member.size >= 0 else _end_of(handle, member)
        if end is None:
            return
        handle.seek(end)
        behind = handle.read(_DESCRIPTOR + len(HEADER)) if member.size < 0 else HEADER
        if (skipped := behind.find(HEADER)) < 0:
            return
        position = end + skipped


def _end_of(handle: IO[bytes], member: CutMember) -> int | None:
    """Where the bytes of a member end whose size is not told; None where they are cut, damaged, or do not tell it themselves."""
    reader = CutMemberReader(handle, member)
    while reader.read(_PIECE):
        pass
    return reader.end


class CutMemberReader(io.RawIOBase):
    """The bytes of a member, as far as they go.

    Args:
        handle: Of the zip.
        member: Which.

    Attributes:
        damage: Why they end before their end; empty where they do not.
    """

    def __init__(self, handle: IO[bytes], member: CutMember) -> None:
        handle.seek(member.start)
        self._handle, self._left = handle, member.size
        self._decoder = zlib.decompressobj(-15) if member.method == DEFLATED else None
        self._waiting = b""
        self.damage = ""

    @property
    def end(self) -> int | None:
        """Where they end in the zip, once all are read; None where they do not tell."""
        return self._handle.tell() - len(self._decoder.unused_data) if self._decoder is not None and self._decoder.eof else None

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Fills a buffer as far as bytes go; 0 at their end."""
        while True:
            if self._decoder is not None and self._decoder.eof:
                return 0
            piece = self._waiting or self._handle.read(len(buffer) if self._left < 0 else min(len(buffer), self._left))
            if not piece:
                self.damage = "" if self._left == 0 else "the file ends early"
                return 0
            if not self._waiting and self._left > 0:
                self._left -= len(piece)
            if self._decoder is None:
                found = piece
            else:
                try:
                    found = self._decoder.decompress(piece, len(buffer))
                except zlib.error as error:
                    self.damage = str(error)
                    return 0
                self._waiting = self._decoder.unconsumed_tail
            if found:
                buffer[: len(found)] = found
                return len(found)
