"""Where the programmes of an XMLTV file are, and where in one an element belongs, as offsets of its bytes.

Nothing is parsed or repaired here: the bytes are copied to the output. Comments and CDATA are blanked, at
their length, while tags are looked for. What does not end (a programme without its end tag, a comment up to
the end of the file) is left as it is.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.ingest.xmltv.frames import END, LARGEST

_HIDDEN = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>", re.DOTALL)
_OPENING = re.compile(rb"<!--|<!\[CDATA\[")
_TAG = re.compile(rb"<(/?)programme(?=[\s/>])")
# Elements in xmltv.dtd's order: up to categories, and from there up to what stands before an episode number.
_CATEGORY = rb"title|sub-title|desc|credits|date|category"
_NUMBER = _CATEGORY + rb"|keyword|language|orig-language|length|icon|url|country|episode-num"
_ENDS = rb"</(%b)\s*>|<(?:%b)(?:\s[^<>]*)?/>"
_HOLDER = rb"<(?:subtitles|(?:star-)?rating)(?:\s[^<>]*)?(?<!/)>.*?</(?:subtitles|(?:star-)?rating)\s*>|"
CATEGORY = re.compile(_ENDS % (_CATEGORY, _CATEGORY))
NUMBER = re.compile(_HOLDER + _ENDS % (_NUMBER, _NUMBER), re.DOTALL)  # not a language or icon in a holder
_SPACE = re.compile(rb"\s*\Z")


@dataclass(frozen=True)
class Block:
    """Whole programmes, and what stands between them."""

    content: bytes
    masked: bytes  # of the same length, without comments and CDATA
    offset: int  # in the file
    spans: list[tuple[int, int]]  # begin and end of each programme in the content

    def place(self, span: tuple[int, int], before: re.Pattern[bytes] = CATEGORY) -> tuple[int, bytes] | None:
        """Where in the file an element of a programme belongs, and the white space before it.

        Args:
            before: What it follows: CATEGORY or NUMBER.
        """
        begin, end = span
        found = before.finditer(self.masked, begin, end)
        anchors = [anchor for anchor in found if anchor[1] or anchor[0].endswith(b"/>")]
        if not anchors:
            return None
        last = anchors[-1]
        opened = self.masked.rfind(b"<" + last[1], begin, last.start()) if last[1] else last.start()
        gap = self.content[self.masked.rfind(b">", begin, max(begin, opened)) + 1 : opened]
        space = _SPACE.search(gap)
        return self.offset + last.end(), space[0] if space else b""


def cut_blocks(pieces: Iterator[bytes], offset: int) -> Iterator[Block]:
    """Blocks of the bytes after the root's start tag, which begin at ``offset``; the last one is the rest.

    In memory is what one piece adds to the programme before it, at most LARGEST bytes more.
    """
    held = b""
    for piece in pieces:
        held += piece
        masked, hidden = _mask(held)
        cut = masked.rfind(END, 0, hidden) + len(END)
        if cut < len(END):
            if len(held) <= LARGEST:
                continue
            cut = len(held) - len(END)  # a programme that is too large: what remains has no begin
        yield _block(held[:cut], masked[:cut], offset)
        offset, held = offset + cut, held[cut:]
    masked, hidden = _mask(held)
    yield _block(held[:hidden], masked[:hidden], offset)


def _mask(content: bytes) -> tuple[bytes, int]:
    """The content with comments and CDATA blanked, and where one begins that does not end (else its end)."""
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
    """The content as ingest reads it."""
    return _HIDDEN.sub(lambda hidden: b"" if hidden[0].startswith(b"<!--") else hidden[0], content)
