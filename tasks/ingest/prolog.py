"""The head of an XMLTV file, up to and with the root's start tag: is it XMLTV, and in which encoding?

The DOCTYPE ends here: it is skipped as text and never reaches a parser, so nothing in it is declared, fetched or expanded.
What is not closed as it should be (a declaration without ``?>``, a root's tag without its ``>`` or a quote) ends
where the content begins: no programme is taken for a part of it.
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
_CONTENT = re.compile(rb"<(?:programme|channel)(?=[\s/>])|</(?:tv|programmes)\s*>", re.IGNORECASE)
_BEGIN = re.compile(rb"<(?:tv|programmes?|channel)(?=[\s/>])", re.IGNORECASE)
_DECLARATION_TEXT = re.compile(rb"""<!--.*?-->|"[^"]*"|'[^']*'""", re.DOTALL)
_NAME = re.compile(rb"<([^\s/>!?]+)")
_DECLARATION = re.compile(rb"<\?xml\s")
_LESS = re.compile(b"<")
_BLANK = re.compile(rb"\s*")
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be", b"<\0": "utf-16-le", b"\0<": "utf-16-be"}


@dataclass(frozen=True, kw_only=True)
class Prolog:
    """What stood before the content.

    Attributes:
        encoding: Codec of the bytes that follow; "utf-8" where it must be tried first.
        lines: Line breaks before the content.
        ended: Whether the root is one empty tag (``<tv/>``).
        attributes: Of the root, as they are written.
    """

    encoding: str
    lines: int
    ended: bool
    attributes: bytes


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
        position, root = _find_root(head, is_all=False)
        if root is not None or position < 0:
            break
        block = next(blocks, b"") if len(head) <= LARGEST else b""
        if not block:
            _, root = _find_root(head, is_all=True)
            break
        head += block
    if not head.strip():
        raise FeedError(f"{source}: empty (white space alone); expected XMLTV")
    if root is None:
        raise FeedError(f"{source}: not XML; it starts with {head.lstrip()[:40].decode('utf-8', 'replace')!r}, expected XMLTV (<tv> … </tv>)")
    name = root.name.decode("utf-8", "replace")
    if name.lower() not in ROOTS:
        raise FeedError(f"{source}: XML, but not XMLTV; its root is <{name[:40]}>, expected <tv>")
    declaration = head[: head.find(b"<", head.find(b"<") + 1)] if head.lstrip()[:5] == b"<?xml" else b""
    declared = _DECLARED.search(declaration)
    prolog = Prolog(
        encoding=encoding or _codec(declared[1].decode() if declared else "utf-8"),
        lines=head.count(b"\n", 0, root.end),
        ended=root.attributes.endswith(b"/"),
        attributes=root.attributes,
    )
    return prolog, _chain(head[root.end :], blocks)


@dataclass(frozen=True)
class _Root:
    """A root's start tag.

    Attributes:
        name: As it is written.
        attributes: What follows the name, without the closing bracket.
        end: Where the tag ends.
    """

    name: bytes
    attributes: bytes
    end: int


def _find_root(head: bytes, is_all: bool) -> tuple[int, _Root | None]:
    """Where the root's start tag is; position -1: there cannot be one, any other without a tag: read on.

    Args:
        head: Bytes from the beginning.
        is_all: Whether there are no more, or no more that would be waited for.
    """
    position = 0
    while True:
        position = _BLANK.match(head, position).end()  # type: ignore[union-attr]
        if position >= len(head):
            return position, None
        if head[position : position + 9].upper() == b"<!DOCTYPE":
            match, begin = _DOCTYPE.match(head, position), _BEGIN.search(head, position)
            end = match.end() if match is not None else -1
            damaged = is_all if match is None else _BEGIN.search(_DECLARATION_TEXT.sub(b"", match[0]))
            if begin is not None and damaged:
                end = begin.start()
        elif head.startswith(b"<!--", position):
            end = _end_of(head, b"-->", position)
            begin = _BEGIN.search(head, position, max(end, 0))
            if begin is not None and head.find(b"<!--", begin.end(), end) >= 0:  # another one's end
                end = begin.start()
        elif head.startswith(b"<?", position):
            end = _end_of(head, b"?>", position)
            begin = (_LESS if _DECLARATION.match(head, position) else _BEGIN).search(head, position + 1)
            if begin is not None and not 0 <= end <= begin.start():
                end = begin.start()
        elif head.startswith(b"<", position):
            return position, _start_tag(head, position, is_all)
        else:
            return -1, None
        if end < 0:
            return position, None
        position = end


def _end_of(head: bytes, closing: bytes, position: int) -> int:
    """Where what begins at a position has ended; -1 where it has not."""
    end = head.find(closing, position)
    return end + len(closing) if end >= 0 else -1


def _start_tag(head: bytes, position: int, is_all: bool) -> _Root | None:
    """The start tag at a position; one that is not closed before the content begins ends there."""
    tag = _START_TAG.match(head, position)
    content = _CONTENT.search(head, position + 1)
    if tag is not None and (content is None or tag.end() <= content.start()):
        return _Root(tag[1], tag[2], tag.end())
    name = _NAME.match(head, position)
    if name is None or not (content is not None or is_all):
        return None
    limit = content.start() if content is not None else len(head)
    end = head.rfind(b">", position, limit) + 1 or limit
    return _Root(name[1], head[name.end() : end].removesuffix(b">"), end)


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
