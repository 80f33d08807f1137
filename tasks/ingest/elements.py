"""From a frame's bytes to elements, whatever state they are in.

A sound frame is parsed as a whole by a strict parser. One that is not is taken apart, and each programme is tried by
itself: as it is, then with bare ``<`` escaped, then by libxml2's recovery. Only what gives no programme even then is
lost, and says so. No parser here sees a DOCTYPE or an entity but XML's own five, so there is nothing to expand or fetch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import lxml.etree as etree
import numpy as np

from tasks.ingest.frames import Frame

_HARDENED = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False, "collect_ids": False, "remove_comments": True, "remove_pis": True}
_AMPERSAND = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)")
_NUMBER = re.compile(rb"&(#(?:x[0-9a-fA-F]{1,6}|[0-9]{1,7});)")
_BARE_LESS = re.compile(rb"<(?![A-Za-z_/!?])")
_STARTS = re.compile(rb"<programme(?=[\s/>])")
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r")


class Elements:
    """Parses frames of one feed.

    Args:
        encoding: Codec that the feed declares.
    """

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding
        self._strict = etree.XMLParser(encoding="utf-8", **_HARDENED)
        self._lenient = etree.XMLParser(encoding="utf-8", recover=True, **_HARDENED)

    def roots(self, frame: Frame) -> Iterator[tuple[etree._Element | None, int, bytes]]:
        """Trees that hold the channels and programmes of a repaired frame as descendants.

        Yields:
            (tree, line of the tree's line 1, empty bytes), or (None, line, the bytes of a programme that gives no tree).
        """
        content = frame.content
        try:
            yield etree.fromstring(b"<tv>" + content + b"</tv>", self._strict), frame.line, b""
            return
        except etree.XMLSyntaxError:
            pass
        starts = [match.start() for match in _STARTS.finditer(content)]
        line = frame.line
        for start, end in zip([0, *starts], [*starts, len(content)]):
            piece = content[start:end]
            if piece.strip():
                tree = self._piece(piece)
                is_programme = start > 0 or _STARTS.match(piece) is not None
                if is_programme and (tree is None or tree.find("programme") is None):
                    yield None, line, piece
                elif tree is not None:
                    yield tree, line, b""
            line += piece.count(b"\n")

    def attributes(self, written: bytes) -> list[tuple[str, str]]:
        """The attributes of a root's tag, as far as they can be read."""
        content = self.repaired(written).rstrip(b"/ \t\r\n")
        try:
            root = etree.fromstring(b"<tv " + content + b"/>", self._lenient)
        except etree.XMLSyntaxError:
            return []
        return [] if root is None else list(root.items())

    def _piece(self, piece: bytes) -> etree._Element | None:
        """The tree of one programme, or of what stands before the first."""
        for content, parser in ((piece, self._strict), (_BARE_LESS.sub(b"&lt;", piece), self._strict), (_BARE_LESS.sub(b"&lt;", piece), self._lenient)):
            try:
                return etree.fromstring(b"<tv>" + content + b"</tv>", parser)
            except etree.XMLSyntaxError:
                continue
        return None

    def repaired(self, content: bytes) -> bytes:
        """A frame's bytes as UTF-8 without control bytes, in which every ampersand begins one of XML's own references."""
        content = self._utf8(content)
        codes = np.frombuffer(content, dtype=np.uint8)
        if np.count_nonzero(codes < 32) != sum(np.count_nonzero(codes == space) for space in b"\t\n\r"):
            content = content.translate(None, _CONTROLS)
        if b"&#" in content:
            content = _NUMBER.sub(_sound_number, content)
        return _AMPERSAND.sub(b"&amp;", content)

    def _utf8(self, content: bytes) -> bytes:
        """Transcodes; UTF-8 is tried first whatever is declared, for it is seldom met by chance."""
        if content.isascii():
            return content
        try:
            content.decode("utf-8")
            return content
        except UnicodeDecodeError:
            pass
        if self.encoding != "utf-8":
            return content.decode(self.encoding, "replace").encode("utf-8")
        if _STARTS.search(content, 1) is None:  # a single programme
            return content.decode("cp1252", "replace").encode("utf-8")
        starts = [0, *(match.start() for match in _STARTS.finditer(content) if match.start()), len(content)]
        return b"".join(self._utf8(content[start:end]) for start, end in pairwise(starts))


def _sound_number(reference: re.Match[bytes]) -> bytes:
    """A reference to a character that XML has, as it is; one to any other as text (libxml2's recovery hands out broken UTF-8 for them)."""
    number = reference[1][1:-1]
    code = int(number[1:], 16) if number[:1] == b"x" else int(number)
    sound = code in (9, 10, 13) or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
    return reference[0] if sound else b"&amp;" + reference[1]
