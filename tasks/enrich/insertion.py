"""Inserts elements into the bytes of an XMLTV guide, at the positions that xmltv.dtd prescribes.

Positions are found by regular expressions and not by an XML parser, because all other bytes of the guide are
copied to the output unchanged.
"""

import codecs
import re
from collections.abc import Iterable, Iterator

# Names of the elements that may precede a new element in a programme, in the order of xmltv.dtd.
_UP_TO_CATEGORY = rb"title|sub-title|desc|credits|date|category"
_UP_TO_NUMBER = _UP_TO_CATEGORY + rb"|keyword|language|orig-language|length|icon|url|country|episode-num"
_END_TAG = rb"</(%b)\s*>|<(?:%b)(?:\s[^<>]*)?/>"
_NESTED = rb"<(?:subtitles|(?:star-)?rating)(?:\s[^<>]*)?(?<!/)>.*?</(?:subtitles|(?:star-)?rating)\s*>|"
# Patterns of the end tags after which a category or an episode-num can be inserted. NUMBER_PREDECESSORS also
# matches complete elements subtitles, rating and star-rating, so that the end tags inside them are skipped.
CATEGORY_PREDECESSORS = re.compile(_END_TAG % (_UP_TO_CATEGORY, _UP_TO_CATEGORY))
NUMBER_PREDECESSORS = re.compile(_NESTED + _END_TAG % (_UP_TO_NUMBER, _UP_TO_NUMBER), re.DOTALL)
_TRAILING_SPACE = re.compile(rb"\s*\Z")


def find_insertion_point(
    content: bytes, masked: bytes, span: tuple[int, int], predecessors: re.Pattern[bytes]
) -> tuple[int, bytes]:
    """Finds the offset at which to insert an element, and the white space to insert before the element.

    Args:
        content: Bytes of a section of the guide.
        masked: ``content`` with comments and CDATA sections blanked.
        span: Begin and end of the programme in ``content``.
        predecessors: Pattern of the elements that precede the new element (CATEGORY_PREDECESSORS or
            NUMBER_PREDECESSORS).

    Returns:
        Offset in ``content``, and white space. The offset is -1 if the programme has no preceding element.
    """
    begin, end = span
    matches = predecessors.finditer(masked, begin, end)
    end_tags = [match for match in matches if match[1] or match[0].endswith(b"/>")]
    if not end_tags:
        return -1, b""
    last_tag = end_tags[-1]
    last_tag_begin = (
        masked.rfind(b"<" + last_tag[1], begin, last_tag.start()) if last_tag[1] else last_tag.start()
    )
    preceding_text = content[masked.rfind(b">", begin, max(begin, last_tag_begin)) + 1 : last_tag_begin]
    space = _TRAILING_SPACE.search(preceding_text)
    return last_tag.end(), space[0] if space else b""


def insert_elements(pieces: Iterable[bytes], additions: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
    """Yields the bytes of a stream, with additions inserted.

    Args:
        pieces: Bytes of the stream, in pieces of any length.
        additions: (offset in the stream, bytes to insert there), by ascending offset.

    Raises:
        RuntimeError: An offset is beyond the end of the stream.
    """
    offset, text = next(additions, (-1, b""))
    begin = 0
    for piece in pieces:
        end, parts, copied_bytes = begin + len(piece), [], 0
        while begin < offset <= end:
            parts += (piece[copied_bytes : offset - begin], text)
            copied_bytes = offset - begin
            offset, text = next(additions, (-1, b""))
        yield b"".join([*parts, piece[copied_bytes:]])
        begin = end
    if offset >= 0:
        raise RuntimeError(
            f"the guide was changed while it was enriched: an element is to be inserted at offset {offset}, "
            f"but the guide has {begin} bytes; run the command again"
        )


def add_declaration(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yields an XML file with a declaration at its start, which is inserted if the file has none.

    Args:
        pieces: Bytes of the file in pieces of any length. A byte order mark stays in front.
        encoding: Encoding to declare.
    """
    first_piece = next(pieces, b"")
    byte_order_mark = codecs.BOM_UTF8 if first_piece.startswith(codecs.BOM_UTF8) else b""
    has_declaration = first_piece[len(byte_order_mark) :].startswith(b"<?xml")
    name = {"cp1252": "windows-1252"}.get(encoding, encoding.upper())
    declaration = "" if has_declaration else f'<?xml version="1.0" encoding="{name}"?>\n'
    yield byte_order_mark + declaration.encode() + first_piece[len(byte_order_mark) :]
    yield from pieces
