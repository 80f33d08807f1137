"""The bytes of a feed, uncompressed: what a file is, is told by its first bytes, not by its name.

Damaged compression ends the stream, it does not fail it: everything up to the damage is handed out and ``damage`` says
what happened.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Protocol

import pyarrow as pa

from tasks.ingest import cut_zip
from tasks.ingest.feeds import Feed, FeedError

PIECE = 1 << 14  # compressed bytes read at a time
BLOCK = 1 << 18  # uncompressed bytes handed out at a time, at most
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"(\xb5/\xfd": "zstd", b"PK\x03\x04": "zip"}


class _Decoder(Protocol):
    """What bz2 and lzma have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class FeedStream:
    """Iterates over a feed's uncompressed bytes, at most 256 KiB at a time.

    Attributes:
        position: Bytes of the file consumed so far.
        produced: Bytes handed out so far.
        damage: Why the stream ended before its end; empty when it did not.
    """

    def __init__(self, feed: Feed, size_cap_bytes: int) -> None:
        self.feed = feed
        self.size_cap_bytes = size_cap_bytes
        self.position = 0
        self.produced = 0
        self.damage = ""

    @property
    def share_read(self) -> float:
        """Share of the file consumed, 0 to 1."""
        return min(1.0, self.position / self.feed.bytes)

    def __iter__(self) -> Iterator[bytes]:
        with open(self.feed.file, "rb") as handle:
            magic = handle.read(8)
            handle.seek(0)
            for block in self._blocks(_form(magic), handle):
                self.produced += len(block)
                if self.produced > self.size_cap_bytes:
                    raise FeedError(f"{self.feed.source}: larger than {self.size_cap_bytes:,} bytes uncompressed (ingest.size_cap_bytes); nothing was stored")
                if block:
                    yield block
        if self.damage and not self.produced:
            raise self.nothing_readable()

    def nothing_readable(self) -> FeedError:
        """The error for a feed of which the damage leaves nothing."""
        return FeedError(f"{self.feed.source}: damaged compression ({self.damage}), nothing in it can be read; {_advice(self.feed.file)}")

    def _blocks(self, form: str, handle: IO[bytes]) -> Iterator[bytes]:
        if form == "plain":
            return self._pieces(handle, BLOCK)
        if form == "zip":
            return self._unzip(handle)
        if form == "zstd":
            return self._unzstd(handle)
        pieces = self._pieces(handle, PIECE)
        if form == "gzip":
            return self._gunzip(pieces)
        return self._decode(pieces, bz2.BZ2Decompressor if form == "bzip2" else lzma.LZMADecompressor)

    def _pieces(self, handle: IO[bytes], size: int) -> Iterator[bytes]:
        while piece := handle.read(size):
            self.position += len(piece)
            yield piece

    def _gunzip(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Members one after another; up to the very byte of the damage."""
        decoder = zlib.decompressobj(31)
        for piece in pieces:
            while piece:
                if decoder.eof:
                    decoder = zlib.decompressobj(31)
                    piece = piece.lstrip(b"\0")  # padding between members
                    if not piece:
                        break
                kept = decoder.copy()
                try:
                    yield decoder.decompress(piece, BLOCK)
                except zlib.error as error:
                    self.damage = str(error)
                    yield _up_to_damage(kept, piece)
                    return
                piece = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
        if not decoder.eof:
            self.damage = "the file ends early"
            yield decoder.flush()

    def _decode(self, pieces: Iterator[bytes], new_decoder: Callable[[], _Decoder]) -> Iterator[bytes]:
        """Streams of bzip2 or xz one after another."""
        decoder = new_decoder()
        for piece in pieces:
            while piece or not decoder.needs_input:
                if decoder.eof:
                    piece = (decoder.unused_data or piece).lstrip(b"\0")
                    decoder = new_decoder()
                    if not piece:
                        break
                try:
                    yield decoder.decompress(piece, BLOCK)
                except (OSError, EOFError, lzma.LZMAError) as error:
                    self.damage = str(error)
                    return
                piece = decoder.unused_data if decoder.eof else b""
                if decoder.eof and not piece:
                    break
        if not decoder.eof:
            self.damage = self.damage or "the file ends early"

    def _unzip(self, handle: IO[bytes]) -> Iterator[bytes]:
        try:
            archive = zipfile.ZipFile(handle)
        except (zipfile.BadZipFile, NotImplementedError):
            yield from self._unzip_cut(handle)
            return
        try:
            with archive, archive.open(self.feed.member) as member:
                yield from self._member(handle, io.BufferedReader(member))  # pyright: ignore[reportArgumentType]
        except (RuntimeError, KeyError) as error:  # zipfile's words for a password, and for no such member
            raise FeedError(f"{self.feed.source}: {error}; expected a zip of guides without password") from error
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, lzma.LZMAError) as error:
            self.damage = str(error)

    def _unzip_cut(self, handle: IO[bytes]) -> Iterator[bytes]:
        """A member of a zip that lacks its end."""
        found = next(member for member in cut_zip.members_of(handle) if member.name == self.feed.member)
        member = cut_zip.CutMemberReader(handle, found)
        yield from self._member(handle, io.BufferedReader(member))
        self.damage = member.damage or self.damage

    def _member(self, handle: IO[bytes], member: io.BufferedReader) -> Iterator[bytes]:
        """A member of a zip, which may be compressed once more."""
        form = _form(member.peek(8)[:8])
        if form == "zip":
            raise FeedError(f"{self.feed.source}: a zip inside a zip; unpack the outer one")
        for block in self._blocks(form, member):
            self.position = handle.tell()
            yield block

    def _unzstd(self, handle: IO[bytes]) -> Iterator[bytes]:
        try:
            with pa.CompressedInputStream(pa.PythonFile(handle, "r"), "zstd") as member:
                while block := member.read(BLOCK):
                    self.position = handle.tell()
                    yield block
        except OSError as error:
            self.damage = str(error)


def _form(magic: bytes) -> str:
    """What a file is, by its first bytes."""
    return next((form for start, form in _MAGIC.items() if magic.startswith(start)), "plain")


def _up_to_damage(decoder: zlib._Decompress, piece: bytes) -> bytes:
    """What can be read of a piece, byte by byte, before the damage."""
    blocks: list[bytes] = []
    try:
        for i in range(len(piece)):
            blocks.append(decoder.decompress(piece[i : i + 1]))
    except zlib.error:
        pass
    return b"".join(blocks)


def _advice(file: Path) -> str:
    """What to do about a file that cannot be uncompressed; compressed bytes hold bare line feeds, one in 256."""
    with open(file, "rb") as handle:
        head = handle.read(1 << 20)
    if head.count(b"\n") == head.count(b"\r\n") >= 8:
        return "it was sent as text (a carriage return stands before every line feed): fetch it again as binary"
    return "fetch it again"
