"""Locates programmes in an XMLTV file, and insertion points within them, as byte offsets.

Nothing is parsed or repaired, because the bytes are copied to the output. Comments and CDATA are replaced by
blanks of the same length before tags are searched. Unterminated parts (a programme without end tag, a comment
up to the end of the file) are copied unchanged.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.ingest.xmltv.frames import END, LARGEST

_HIDDEN = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>", re.DOTALL)
_OPENING = re.compile(rb"<!--|<!\[CDATA\[")
_TAG = re.compile(rb"<(/?)programme(?=[\s/>])")
# Elements in the order of xmltv.dtd: those up to category, and those up to episode-num.
_CATEGORY = rb"title|sub-title|desc|credits|date|category"
_NUMBER = _CATEGORY + rb"|keyword|language|orig-language|length|icon|url|country|episode-num"
_ENDS = rb"</(%b)\s*>|<(?:%b)(?:\s[^<>]*)?/>"
_HOLDER = rb"<(?:subtitles|(?:star-)?rating)(?:\s[^<>]*)?(?<!/)>.*?</(?:subtitles|(?:star-)?rating)\s*>|"
CATEGORY = re.compile(_ENDS % (_CATEGORY, _CATEGORY))
NUMBER = re.compile(_HOLDER + _ENDS % (_NUMBER, _NUMBER), re.DOTALL)  # ignores elements inside a holder
_SPACE = re.compile(rb"\s*\Z")


@dataclass(frozen=True)
class Block:
    """Complete programmes and the bytes between them."""

    content: bytes
    masked: bytes  # of the same length, comments and CDATA blanked
    offset: int  # in the file
    spans: list[tuple[int, int]]  # begin and end of each programme in the content

    def place(self, span: tuple[int, int], after: re.Pattern[bytes] = CATEGORY) -> tuple[int, bytes] | None:
        """Finds the file offset at which to insert an element, and the white space to put before it.

        Args:
            span: Begin and end of the programme.
            after: Elements after which it belongs: CATEGORY or NUMBER.
        """
        begin, end = span
        matches = after.finditer(self.masked, begin, end)
        anchors = [anchor for anchor in matches if anchor[1] or anchor[0].endswith(b"/>")]
        if not anchors:
            return None
        last = anchors[-1]
        opened = self.masked.rfind(b"<" + last[1], begin, last.start()) if last[1] else last.start()
        gap = self.content[self.masked.rfind(b">", begin, max(begin, opened)) + 1 : opened]
        space = _SPACE.search(gap)
        return self.offset + last.end(), space[0] if space else b""


def cut_blocks(pieces: Iterator[bytes], offset: int) -> Iterator[Block]:
    """Splits the bytes after the root's start tag, which is at ``offset``, into blocks.

    Blocks contain complete programmes; memory holds one piece and one incomplete programme of at most LARGEST
    bytes. The last block is the rest.
    """
    content = b""
    for piece in pieces:
        content += piece
        masked, hidden = _mask(content)
        cut = masked.rfind(END, 0, hidden) + len(END)
        if cut < len(END):
            if len(content) <= LARGEST:
                continue
            cut = len(content) - len(END)  # the programme is too large; its rest has no start tag
        yield _block(content[:cut], masked[:cut], offset)
        offset, content = offset + cut, content[cut:]
    masked, hidden = _mask(content)
    yield _block(content[:hidden], masked[:hidden], offset)


def _mask(content: bytes) -> tuple[bytes, int]:
    """Blanks comments and CDATA; also returns the start of an unterminated one (else the length)."""
    if b"<!" not in content:
        return content, len(content)
    masked = _HIDDEN.sub(lambda hidden: b" " * len(hidden[0]), content)
    opening = _OPENING.search(masked)
    return masked, opening.start() if opening else len(masked)


def _block(content: bytes, masked: bytes, offset: int) -> Block:
    spans, begin = [], -1
    for tag in _TAG.finditer(masked):
        if not tag[1]:
            begin = tag.start()
        elif begin >= 0 and (end := masked.find(b">", tag.end()) + 1):
            spans.append((begin, end))
            begin = -1
    return Block(content, masked, offset, spans)


def without_comments(content: bytes) -> bytes:
    """Removes comments, as ingest does."""
    return _HIDDEN.sub(lambda hidden: b"" if hidden[0].startswith(b"<!--") else hidden[0], content)
