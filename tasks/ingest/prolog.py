"""The head of an XMLTV file, up to and with the root's start tag: is it XMLTV, and in which encoding?

The DOCTYPE ends here: it is skipped as text and never reaches a parser, so nothing in it is declared, fetched or expanded.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.ingest.feeds import FeedError

ROOTS = ("tv", "programmes")
LARGEST = 1 << 20  # bytes before the root's start tag; real ones have a few hundred
_DECLARED = re.compile(rb"""encoding\s*=\s*["']([\w.:-]+)["']""")
_DOCTYPE = re.compile(rb"<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL | re.IGNORECASE)
_START_TAG = re.compile(rb"""<([^\s/>!?]+)((?:[^>"']|"[^"]*"|'[^']*')*+)>""")
_BLANK = re.compile(rb"\s*")
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}


@dataclass(frozen=True, kw_only=True)
class Prolog:
    """What stood before the content.

    Attributes:
        encoding: Codec of the bytes that follow; "utf-8" where it must be tried first.
        lines: Line breaks before the content.
        ended: Whether the root is one empty tag (``<tv/>``).
    """

    encoding: str
    lines: int
    ended: bool


def read_prolog(blocks: Iterator[bytes], source: str) -> tuple[Prolog, Iterator[bytes]]:
    """Reads up to the root's start tag.

    Args:
        blocks: The file's bytes.
        source: The feed, for messages.

    Returns:
        The prolog, and the bytes after it; two-byte encodings come out as UTF-8.

    Raises:
        FeedError: No bytes, no XML, or XML of another kind.
    """
    head = next(blocks, b"")
    while len(head) < 4 and (block := next(blocks, b"")):
        head += block
    mark, encoding = next(((mark, codec) for mark, codec in _MARKS.items() if head.startswith(mark)), (b"", ""))
    if encoding.startswith("utf-16"):
        blocks = _as_utf8(_chain(head, blocks), encoding)
        head = next(blocks, b"")
        encoding, mark = "utf-8", codecs.BOM_UTF8
    head = head.removeprefix(mark if mark == codecs.BOM_UTF8 else b"")
    while True:
        position, root = _find_root(head)
        if root is not None or position < 0 or len(head) > LARGEST:
            break
        block = next(blocks, b"")
        if not block:
            break
        head += block
    if not head.strip():
        raise FeedError(f"{source}: empty (white space alone); expected XMLTV")
    if root is None:
        raise FeedError(f"{source}: not XML; it starts with {head.lstrip()[:40].decode('utf-8', 'replace')!r}, expected XMLTV (<tv> … </tv>)")
    name = root[1].decode("utf-8", "replace")
    if name.lower() not in ROOTS:
        raise FeedError(f"{source}: XML, but not XMLTV; its root is <{name[:40]}>, expected <tv>")
    declared = _DECLARED.search(head[: head.find(b"?>")]) if head.lstrip()[:5] == b"<?xml" else None
    prolog = Prolog(
        encoding=encoding or _codec(declared[1].decode() if declared else "utf-8"),
        lines=head.count(b"\n", 0, root.end()),
        ended=root[2].endswith(b"/"),
    )
    return prolog, _chain(head[root.end() :], blocks)


def _find_root(head: bytes) -> tuple[int, re.Match[bytes] | None]:
    """Where the root's start tag is; position -1 when there cannot be one, any other without a match: not read far enough."""
    position = 0
    while True:
        position = _BLANK.match(head, position).end()  # type: ignore[union-attr]
        if position >= len(head):
            return position, None
        if head.startswith(b"<?", position) or head.startswith(b"<!--", position):
            closing = b"?>" if head.startswith(b"<?", position) else b"-->"
            end = head.find(closing, position)
            if end < 0:
                return position, None
            position = end + len(closing)
        elif head[position : position + 9].upper() == b"<!DOCTYPE":
            match = _DOCTYPE.match(head, position)
            if match is None:
                return position, None
            position = match.end()
        elif head.startswith(b"<", position):
            return position, _START_TAG.match(head, position)
        else:
            return -1, None


def _codec(name: str) -> str:
    """Python's name of a declared encoding of bytes that hold ASCII as it is; any other is tried as UTF-8."""
    try:
        ascii_as_it_is = bytes(range(32, 127)).decode(name, "replace") == "".join(map(chr, range(32, 127)))
        bytes(range(256)).decode(name, "replace")
    except (LookupError, UnicodeError, ValueError):  # unknown, no encoding of text (hex), or one that mends nothing (idna)
        return "utf-8"
    return codecs.lookup(name).name if ascii_as_it_is else "utf-8"


def _as_utf8(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for block in blocks:
        yield decoder.decode(block).encode("utf-8", "replace")


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
