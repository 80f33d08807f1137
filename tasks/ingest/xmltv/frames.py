"""Splits an XMLTV file into frames, which are parts of about 400 KiB with complete programmes.

A parser for the complete file would fail at the first damaged programme (an unescaped ``<``, an unclosed tag,
an attribute of a gigabyte), or misread everything after it. One XML tree per frame is also faster than
incremental parsing of the file (150,000 instead of 105,000 programmes/s).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

PROGRAMME_END = b"</programme>"
MAX_PROGRAMME_BYTES = 4 << 20  # larger programmes are rejected
_MAX_CDATA_BYTES = 64 << 10  # a longer CDATA section is treated as unterminated
_PROGRAMME_START, _CHANNEL_END = b"<programme", b"</channel>"
_CDATA_PATTERN = rb"<!\[CDATA\[(?:[^<\]]|<(?!!\[CDATA\[)|\](?!\]>))*+\]\]>"
_CDATA = re.compile(_CDATA_PATTERN)
_COMMENT_OR_CDATA = re.compile(rb"<!--.*?-->|" + _CDATA_PATTERN, re.DOTALL)
_ROOT_END = re.compile(rb"</(?:tv|programmes)\s*>\Z", re.IGNORECASE)
_PROGRAMME_TAG = re.compile(rb"<(/?)programme(?=[\s/>])")
# Table for bytes.translate that replaces all bytes except line feeds by \x01.
_MASK_TABLE = bytes(byte if byte == ord("\n") else 1 for byte in range(256))


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Part of an XMLTV file with complete programmes.

    Attributes:
        content: Bytes of the file. In comments, all bytes except for line feeds are replaced by control
            bytes, so that offsets and line numbers do not change; ``repair`` (text.py) removes control bytes.
        offset: Offset of the content in the uncompressed file.
        line: Number of the first line, from 1.
        reason: Why the content is rejected: "oversized" or "truncated"; empty if it can be parsed.
    """

    content: bytes
    offset: int
    line: int
    reason: str = ""


def cut_frames(blocks: Iterator[bytes], offset: int, line: int, is_closed: bool = False) -> Iterator[Frame]:
    """Splits the bytes after the start tag of the root element into frames.

    If the end tag of the root is missing, the last programme is a separate frame with the reason "truncated".

    Args:
        blocks: Uncompressed bytes after the start tag of the root element.
        offset: Offset of the first block in the file.
        line: Line number of the first block.
        is_closed: Whether the root is an empty tag (``<tv/>``). Programmes after it are read nevertheless.
    """
    buffer = b""
    is_skipping = False  # whether the rest of an oversized programme is being skipped

    def take_frame(size: int, reason: str = "", excerpt_bytes: int | None = None) -> Frame:
        """Removes ``size`` bytes from ``buffer``. Returns all or the first ``excerpt_bytes`` as a frame."""
        nonlocal buffer, offset, line
        content = buffer[: size if excerpt_bytes is None else excerpt_bytes]
        frame = Frame(content=content, offset=offset, line=line, reason=reason)
        offset, line, buffer = offset + size, line + buffer.count(b"\n", 0, size), buffer[size:]
        return frame

    for block in blocks:
        buffer += block
        if is_skipping:
            start = buffer.find(_PROGRAMME_START, 1)
            is_skipping = start < 0
            take_frame(max(0, len(buffer) - 32) if is_skipping else start)
            if is_skipping:
                continue
        buffer = _hide_comments(buffer)
        masked_content = hide_cdata(buffer)
        unterminated_starts = (
            masked_content.find(b"<!--"),
            masked_content.rfind(b"<![CDATA[", max(0, len(masked_content) - _MAX_CDATA_BYTES)),
        )
        limit = min(
            (position for position in unterminated_starts if position >= 0), default=len(masked_content)
        )
        complete_end = masked_content.rfind(PROGRAMME_END, 0, limit) + len(PROGRAMME_END)
        if complete_end >= len(PROGRAMME_END):
            yield take_frame(complete_end)
        elif len(buffer) > MAX_PROGRAMME_BYTES:
            # cut after the ``<`` of the programme, so that its rest is not rejected as a second programme
            yield take_frame(buffer.find(_PROGRAMME_START) + 1, "oversized", excerpt_bytes=1000)
            is_skipping = True
    content = buffer.rstrip(b"\x01 \t\r\n")  # without hidden comments after the root
    if content or not is_closed:
        root_end = _ROOT_END.search(content, max(0, len(content) - 4096))
        complete_end = root_end.start() if root_end else buffer.rfind(_PROGRAMME_START)
        if complete_end < 0:
            complete_end = buffer.rfind(_CHANNEL_END) + len(_CHANNEL_END) if _CHANNEL_END in buffer else 0
        yield take_frame(complete_end)
        if not root_end:
            yield take_frame(len(buffer), "truncated")


def split_at_programmes(content: bytes, size: int) -> Iterator[tuple[int, int]]:
    """Yields (begin, end) of parts of ``content`` that have about ``size`` bytes and complete programmes."""
    masked_content, begin = hide_cdata(content), 0
    while begin < len(content):
        end_tag = masked_content.find(PROGRAMME_END, begin + size - len(PROGRAMME_END))
        end = end_tag + len(PROGRAMME_END) if end_tag >= 0 else len(content)
        yield begin, end
        begin = end


def find_programmes(content: bytes) -> list[tuple[int, int]]:
    """Returns (begin, end) of each programme element in ``content``; end is -1 without an end tag."""
    masked_content = hide_cdata(content)
    tags = list(_PROGRAMME_TAG.finditer(masked_content))
    spans = []
    for tag, next_tag in zip(tags, [*tags[1:], None]):
        if not tag[1]:
            end = masked_content.find(b">", next_tag.end()) + 1 if next_tag and next_tag[1] else 0
            spans.append((tag.start(), end or -1))
    return spans


def hide_cdata(content: bytes) -> bytes:
    """Replaces CDATA sections by spaces, so that a search for tags ignores their content."""
    return _CDATA.sub(lambda section: b" " * len(section[0]), content) if b"<![" in content else content


def _hide_comments(content: bytes) -> bytes:
    """Replaces all bytes of terminated comments, except for line feeds, by control bytes."""
    end = content.rfind(b"-->") + 3  # each comment before this position ends, so the search takes linear time
    if end < 3 or content.find(b"<!--", 0, end) < 0:
        return content
    hidden = _COMMENT_OR_CDATA.sub(
        lambda section: section[0].translate(_MASK_TABLE) if section[0].startswith(b"<!--") else section[0],
        content[:end],
    )
    return hidden + content[end:]
