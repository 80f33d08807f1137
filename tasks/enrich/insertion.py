"""Inserts elements into the bytes of an XMLTV guide, at the position that xmltv.dtd prescribes.

The bytes are searched by regular expressions and not parsed, because they are copied to the output unchanged.
"""

import codecs
import re
from collections.abc import Iterable, Iterator

_CATEGORY = rb"title|sub-title|desc|credits|date|category"
_NUMBER = _CATEGORY + rb"|keyword|language|orig-language|length|icon|url|country|episode-num"
_ENDS = rb"</(%b)\s*>|<(?:%b)(?:\s[^<>]*)?/>"
_HOLDER = rb"<(?:subtitles|(?:star-)?rating)(?:\s[^<>]*)?(?<!/)>.*?</(?:subtitles|(?:star-)?rating)\s*>|"
# CATEGORY matches ends of the elements up to category, NUMBER those up to episode-num. NUMBER also matches
# the elements subtitles, rating and star-rating as a whole, so that ends inside them are ignored.
CATEGORY = re.compile(_ENDS % (_CATEGORY, _CATEGORY))
NUMBER = re.compile(_HOLDER + _ENDS % (_NUMBER, _NUMBER), re.DOTALL)
_SPACE = re.compile(rb"\s*\Z")


def find_insertion_point(
    content: bytes, masked: bytes, span: tuple[int, int], after: re.Pattern[bytes]
) -> tuple[int, bytes]:
    """Finds the offset at which to insert an element, and the white space to insert before the element.

    Args:
        content: Bytes of a section of the guide.
        masked: The same bytes, with comments and CDATA sections blanked.
        span: Begin and end of the programme in ``content``.
        after: Pattern of the elements after which the new element belongs: CATEGORY or NUMBER.

    Returns:
        Offset and white space. The offset is -1 if the programme has none of these elements.
    """
    begin, end = span
    anchors = [match for match in after.finditer(masked, begin, end) if match[1] or match[0].endswith(b"/>")]
    if not anchors:
        return -1, b""
    anchor = anchors[-1]
    tag_begin = masked.rfind(b"<" + anchor[1], begin, anchor.start()) if anchor[1] else anchor.start()
    gap = content[masked.rfind(b">", begin, max(begin, tag_begin)) + 1 : tag_begin]
    space = _SPACE.search(gap)
    return anchor.end(), space[0] if space else b""


def insert(pieces: Iterable[bytes], additions: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
    """Yields a byte stream in which additions, (offset, bytes) by ascending offset, are inserted."""
    offset, text = next(additions, (-1, b""))
    begin = 0
    for piece in pieces:
        end, parts, copied = begin + len(piece), [], 0
        while begin < offset <= end:
            parts += (piece[copied : offset - begin], text)
            copied = offset - begin
            offset, text = next(additions, (-1, b""))
        yield b"".join([*parts, piece[copied:]])
        begin = end
    if offset >= 0:
        raise RuntimeError(f"addition at offset {offset}, but the guide has {begin} bytes: it was changed")


def declare(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yields a byte stream with an XML declaration at the start (after a byte order mark) if it has none."""
    first_piece = next(pieces, b"")
    mark = codecs.BOM_UTF8 if first_piece.startswith(codecs.BOM_UTF8) else b""
    has_declaration = first_piece[len(mark) :].startswith(b"<?xml")
    name = {"cp1252": "windows-1252"}.get(encoding, encoding.upper())
    declaration = "" if has_declaration else f'<?xml version="1.0" encoding="{name}"?>\n'
    yield mark + declaration.encode() + first_piece[len(mark) :]
    yield from pieces
