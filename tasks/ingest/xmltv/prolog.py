"""Reads the prolog of an XMLTV file: everything before the content of the root, with the declared encoding.

The DOCTYPE is skipped and never reaches an XML parser, so that no entity in it is declared, fetched or
expanded. Unterminated markup (a declaration without ``?>``, a start tag without ``>`` or closing quote) is
assumed to end where the first channel or programme begins.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from tasks.ingest.sources.feeds import FeedError

ROOT_NAMES = ("tv", "programmes")
_MAX_BYTES = 1 << 20  # maximum bytes before the start tag of the root; real guides have a few hundred
_DECLARED_ENCODING = re.compile(rb"""encoding\s*=\s*["']([\w.:-]+)["']""")
_DOCTYPE = re.compile(rb"<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL | re.IGNORECASE)
_START_TAG = re.compile(rb"""<([^\s/>!?]+)((?:[^>"']|"[^"]*"|'[^']*')*+)>""")
_CONTENT_OR_END = re.compile(rb"<(?:programme|channel)(?=[\s/>])|</(?:tv|programmes)\s*>", re.IGNORECASE)
_XMLTV_TAG = re.compile(rb"<(?:tv|programmes?|channel)(?=[\s/>])", re.IGNORECASE)
_COMMENT_OR_STRING = re.compile(rb"""<!--.*?-->|"[^"]*"|'[^']*'""", re.DOTALL)
_TAG_START = re.compile(rb"<([^\s/>!?]+)")
_DECLARATION = re.compile(rb"<\?xml\s")
_ANY_TAG = re.compile(b"<")
_WHITE_SPACE = re.compile(rb"\s*")
UTF_16_CODECS = {  # first two bytes of a file -> codec
    **dict.fromkeys((codecs.BOM_UTF16_LE, b"<\0"), "utf-16-le"),
    **dict.fromkeys((codecs.BOM_UTF16_BE, b"\0<"), "utf-16-be"),
}


@dataclass(frozen=True, kw_only=True)
class Prolog:
    """Part of an XMLTV file before its content (the channels and programmes)."""

    encoding: str  # declared codec of the content; UTF-8 is tried first
    length: int  # number of bytes of the prolog
    lines: int  # number of line breaks in the prolog
    is_closed: bool  # whether the root is an empty tag (``<tv/>``)
    attributes: bytes  # attributes of the root element, not decoded


def read_prolog(blocks: Iterator[bytes], source: str) -> tuple[Prolog, Iterator[bytes]]:
    """Reads the prolog of an XMLTV file.

    Args:
        blocks: Uncompressed bytes of the file.
        source: Name of the feed, for messages.

    Returns:
        The prolog, and the blocks of bytes after it; UTF-16 is converted to UTF-8.

    Raises:
        FeedError: The file is empty, not XML, or not XMLTV.
    """
    head = next(blocks, b"")
    while len(head) < 4 and (block := next(blocks, b"")):
        head += block
    is_utf_16 = head[:2] in UTF_16_CODECS
    if is_utf_16:
        decoder = codecs.getincrementaldecoder(UTF_16_CODECS[head[:2]])("replace")
        blocks = (decoder.decode(block).encode("utf-8", "replace") for block in chain([head], blocks))
        head = next(blocks, b"")
    byte_order_mark = codecs.BOM_UTF8 if head.startswith(codecs.BOM_UTF8) else b""
    head = head.removeprefix(byte_order_mark)
    while True:
        position, root = _find_root(head, is_complete=False)
        if root is not None or position < 0:
            break
        block = next(blocks, b"") if len(head) <= _MAX_BYTES else b""
        if not block:
            _, root = _find_root(head, is_complete=True)
            break
        head += block
    if not head.strip():
        raise FeedError(f"{source}: empty (white space only); expected XMLTV")
    if root is None:
        start = head.lstrip()[:40].decode("utf-8", "replace")
        raise FeedError(f"{source}: not XML; it starts with {start!r}, expected XMLTV (<tv> … </tv>)")
    name = root.name.decode("utf-8", "replace")
    if name.lower() not in ROOT_NAMES:
        raise FeedError(f"{source}: XML, but not XMLTV; its root is <{name[:40]}>, expected <tv>")
    declaration = head[: head.find(b"<", head.find(b"<") + 1)] if head.lstrip()[:5] == b"<?xml" else b""
    declared_encoding = _DECLARED_ENCODING.search(declaration)
    prolog = Prolog(
        encoding="utf-8"
        if byte_order_mark or is_utf_16 or not declared_encoding
        else _codec_of(declared_encoding[1].decode()),
        length=len(byte_order_mark) + root.end,
        lines=head.count(b"\n", 0, root.end),
        is_closed=root.attributes.endswith(b"/"),
        attributes=root.attributes,
    )
    return prolog, chain([head[root.end :]], blocks)


class _Root(NamedTuple):
    """Start tag of the root element."""

    name: bytes
    attributes: bytes  # between the name and ``>``
    end: int  # position after the tag


def _find_root(head: bytes, is_complete: bool) -> tuple[int, _Root | None]:
    """Finds the start tag of the root element in the first bytes of a file.

    Args:
        head: First bytes of the file.
        is_complete: Whether no more bytes will be read.

    Returns:
        The position up to which ``head`` was parsed (-1 if the file is not XML), and the start tag of the
        root; None if ``head`` does not contain it.
    """
    position = 0
    while True:
        position = _WHITE_SPACE.match(head, position).end()  # type: ignore[union-attr]
        if position >= len(head):
            return position, None
        if head[position : position + 9].upper() == b"<!DOCTYPE":
            match, begin = _DOCTYPE.match(head, position), _XMLTV_TAG.search(head, position)
            end = match.end() if match is not None else -1
            is_damaged = (
                is_complete if match is None else _XMLTV_TAG.search(_COMMENT_OR_STRING.sub(b"", match[0]))
            )
            if begin is not None and is_damaged:
                end = begin.start()
        elif head.startswith(b"<!--", position):
            end = head.find(b"-->", position)
            end += 3 if end >= 0 else 0
            begin = _XMLTV_TAG.search(head, position, max(end, 0))
            # the end belongs to a later comment, so this comment is unterminated
            if begin is not None and head.find(b"<!--", begin.end(), end) >= 0:
                end = begin.start()
        elif head.startswith(b"<?", position):
            end = head.find(b"?>", position)
            end += 2 if end >= 0 else 0
            begin = (_ANY_TAG if _DECLARATION.match(head, position) else _XMLTV_TAG).search(
                head, position + 1
            )
            if begin is not None and not 0 <= end <= begin.start():
                end = begin.start()
        elif head.startswith(b"<", position):
            return position, _parse_start_tag(head, position, is_complete)
        else:
            return -1, None
        if end < 0:
            return position, None
        position = end


def _parse_start_tag(head: bytes, position: int, is_complete: bool) -> _Root | None:
    """Parses the start tag at a position. An unterminated tag ends where the first programme begins."""
    tag = _START_TAG.match(head, position)
    content = _CONTENT_OR_END.search(head, position + 1)
    if tag is not None and (content is None or tag.end() <= content.start()):
        return _Root(tag[1], tag[2], tag.end())
    name = _TAG_START.match(head, position)
    if name is None or not (content is not None or is_complete):
        return None
    limit = content.start() if content is not None else len(head)
    end = head.rfind(b">", position, limit) + 1 or limit
    return _Root(name[1], head[name.end() : end].removesuffix(b">"), end)


def _codec_of(name: str) -> str:
    """Returns the Python codec of a declared encoding if it is a superset of ASCII, else "utf-8"."""
    try:
        is_ascii_superset = bytes(range(32, 127)).decode(name, "replace") == "".join(map(chr, range(32, 127)))
        bytes(range(256)).decode(name, "replace")
    except (LookupError, ValueError):  # unknown, not a text encoding (hex), or without "replace" (idna)
        return "utf-8"
    return codecs.lookup(name).name if is_ascii_superset else "utf-8"
