"""Cuts an XMLTV file into frames of about 400 KiB, each a sequence of complete programmes.

A parser for the complete file would fail at the first damaged programme (an unescaped ``<``, an unclosed tag,
an attribute of a gigabyte) or misread everything after it. One tree per frame is also faster than a single
tree whose elements are cleared (150,000 against 105,000 programmes/s).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

END = b"</programme>"
MAX_PROGRAMME_BYTES = 4 << 20  # real programmes are smaller
_MAX_CDATA_BYTES = 64 << 10  # a longer section counts as unterminated
_START, _CHANNEL_END = b"<programme", b"</channel>"
_CDATA_PATTERN = rb"<!\[CDATA\[(?:[^<\]]|<(?!!\[CDATA\[)|\](?!\]>))*+\]\]>"
_CDATA = re.compile(_CDATA_PATTERN)
_COMMENT_OR_CDATA = re.compile(rb"<!--.*?-->|" + _CDATA_PATTERN, re.DOTALL)
_ROOT_END = re.compile(rb"</(?:tv|programmes)\s*>\Z", re.IGNORECASE)
_TAG = re.compile(rb"<(/?)programme(?=[\s/>])")
_CONTROL = bytes(byte if byte == ord("\n") else 1 for byte in range(256))  # for bytes.translate


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Part of a file.

    Attributes:
        content: Bytes of the file. Comments are overwritten by control bytes, except for line feeds, so that
            offsets and lines do not change; ``repair`` (text.py) removes control bytes.
        offset: Offset of the content in the uncompressed file.
        line: Line number of the content, from 1.
        reason: Why the content is rejected: "oversized" or "truncated"; empty for a frame that can be read.
    """

    content: bytes
    offset: int
    line: int
    reason: str = ""


def cut_frames(blocks: Iterator[bytes], offset: int, line: int, ended: bool = False) -> Iterator[Frame]:
    """Yields the frames of the bytes after the start tag of the root.

    If the file ends before its root does, the last programme is a separate frame with the reason "truncated".

    Args:
        blocks: Uncompressed bytes after the start tag of the root.
        offset: Offset of the first block in the file.
        line: Line number of the first block.
        ended: Whether the root is an empty tag (``<tv/>``); bytes after it are read nevertheless.
    """
    pending = b""
    skipping = False  # whether the rest of an oversized programme is being skipped

    def take(size: int, reason: str = "", excerpt_bytes: int | None = None) -> Frame:
        """Removes bytes from ``pending`` and returns them, or the first ``excerpt_bytes``, as a frame."""
        nonlocal pending, offset, line
        content = pending[: size if excerpt_bytes is None else excerpt_bytes]
        frame = Frame(content=content, offset=offset, line=line, reason=reason)
        offset, line, pending = offset + size, line + pending.count(b"\n", 0, size), pending[size:]
        return frame

    for block in blocks:
        pending += block
        if skipping:
            start = pending.find(_START, 1)
            skipping = start < 0
            take(max(0, len(pending) - 32) if skipping else start)
            if skipping:
                continue
        pending = _hide_comments(pending)
        masked = hide_cdata(pending)
        unterminated = (
            masked.find(b"<!--"),
            masked.rfind(b"<![CDATA[", max(0, len(masked) - _MAX_CDATA_BYTES)),
        )
        limit = min((position for position in unterminated if position >= 0), default=len(masked))
        cut = masked.rfind(END, 0, limit) + len(END)
        if cut >= len(END):
            yield take(cut)
        elif len(pending) > MAX_PROGRAMME_BYTES:
            # cut after its ``<``, so that the rest is not found as a programme and rejected again
            yield take(pending.find(_START) + 1, "oversized", excerpt_bytes=1000)
            skipping = True
    content = pending.rstrip(b"\x01 \t\r\n")  # without comments after the root
    if content or not ended:
        root_end = _ROOT_END.search(content, max(0, len(content) - 4096))
        cut = root_end.start() if root_end else pending.rfind(_START)
        if cut < 0:
            cut = pending.rfind(_CHANNEL_END) + len(_CHANNEL_END) if _CHANNEL_END in pending else 0
        yield take(cut)
        if not root_end:
            yield take(len(pending), "truncated")


def split(content: bytes, size: int) -> Iterator[tuple[int, int]]:
    """Yields (begin, end) of parts of about ``size`` bytes, each with complete programmes."""
    masked, begin = hide_cdata(content), 0
    while begin < len(content):
        cut = masked.find(END, begin + size - len(END))
        end = cut + len(END) if cut >= 0 else len(content)
        yield begin, end
        begin = end


def find_programmes(content: bytes) -> list[tuple[int, int]]:
    """Finds begin and end of each programme; the end is -1 for a programme without an end tag."""
    masked = hide_cdata(content)
    tags = list(_TAG.finditer(masked))
    spans = []
    for tag, following in zip(tags, [*tags[1:], None]):
        if not tag[1]:
            end = masked.find(b">", following.end()) + 1 if following and following[1] else 0
            spans.append((tag.start(), end or -1))
    return spans


def hide_cdata(content: bytes) -> bytes:
    """Replaces CDATA sections by spaces, so that tags in them are not found."""
    return _CDATA.sub(lambda section: b" " * len(section[0]), content) if b"<![" in content else content


def _hide_comments(content: bytes) -> bytes:
    end = content.rfind(b"-->") + 3  # each comment before this position ends, so the search takes linear time
    if end < 3 or content.find(b"<!--", 0, end) < 0:
        return content
    hidden = _COMMENT_OR_CDATA.sub(
        lambda part: part[0].translate(_CONTROL) if part[0].startswith(b"<!--") else part[0], content[:end]
    )
    return hidden + content[end:]
