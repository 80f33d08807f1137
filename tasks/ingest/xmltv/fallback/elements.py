"""From a frame's bytes to elements, whatever state they are in.

A sound frame is parsed as a whole by a strict parser. One that is not is split, and each programme is tried
by itself: as it is, then made well-formed (balance.py), then by libxml2's recovery. Only what gives no
programme even then is lost, and reported. No parser here sees a DOCTYPE or an entity but XML's own five:
there is nothing to expand or fetch.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import lxml.etree as etree

from tasks.ingest.encoding import Encoding, show_invalid
from tasks.ingest.xmltv.fallback.balance import PARENTS, balance
from tasks.ingest.xmltv.frames import Frame
from tasks.ingest.xmltv.text import PROGRAMME, repaired

_OFF = dict.fromkeys(("resolve_entities", "load_dtd", "huge_tree", "collect_ids"), False)
_HARDENED: Mapping[str, Any] = {
    **{"encoding": "utf-8", "no_network": True, "remove_comments": True, "remove_pis": True},
    **_OFF,
}
_STRICT, _LENIENT = etree.XMLParser(**_HARDENED), etree.XMLParser(recover=True, **_HARDENED)
_BREAKS = frozenset("br p div li ul ol tr td hr h1 h2 h3 h4 h5 h6".split())  # noqa: SIM905


def roots(frame: Frame) -> Iterator[tuple[etree._Element | None, int, bytes]]:
    """Trees that hold the channels and programmes of a repaired frame as descendants.

    Yields:
        (tree, line of the tree's line 1, b""), or (None, line, bytes) of a programme that gives no tree.
    """
    content = frame.content
    tree = _parsed(content, _STRICT)
    if tree is not None:
        yield tree, frame.line, b""
        return
    starts = [match.start() for match in PROGRAMME.finditer(content)]
    line = frame.line
    for start, end in zip([0, *starts], [*starts, len(content)]):
        piece = content[start:end]
        if piece.strip():
            tree = _parsed(piece, _STRICT)
            if tree is None:
                balanced = balance(piece.decode("utf-8", "replace")).encode()
                attempts = (_parsed(balanced, parser) for parser in (_STRICT, _LENIENT))
                tree = next((attempt for attempt in attempts if attempt is not None), None)
            is_programme = start > 0 or PROGRAMME.match(piece) is not None
            if is_programme and (tree is None or tree.find("programme") is None):
                yield None, line, piece
            elif tree is not None:
                yield tree, line, b""
        line += piece.count(b"\n")


def root_attributes(written: bytes, encoding: Encoding) -> list[tuple[str, str]]:
    """The attributes of a root's tag, as far as they can be read."""
    content = repaired(written, encoding)[0].rstrip(b"/ \t\r\n")
    try:
        root = etree.fromstring(b"<tv " + content + b"/>", _LENIENT)
    except etree.XMLSyntaxError:
        return []
    return [] if root is None else [(name, show_invalid(value)) for name, value in root.items()]


def _parsed(content: bytes, parser: etree.XMLParser) -> etree._Element | None:
    try:
        return etree.fromstring(b"<tv>" + content + b"</tv>", parser)
    except etree.XMLSyntaxError:
        return None


def attributes_of(element: etree._Element, held: frozenset[str] = frozenset()) -> dict[str, str]:
    """An element's attributes, but for those that columns hold."""
    return {f"@{name}": value for name, value in element.items() if name not in held}


def full_text(element: etree._Element) -> str | None:
    """An element's text with that of the HTML in it, without that of XMLTV's elements; None if it is empty.

    A space stands where HTML begins or ends a line.
    """
    if not len(element):
        return element.text
    parts = [element.text or ""]
    for child in element:
        space = " " if child.tag in _BREAKS else ""
        text = "" if child.tag in PARENTS else full_text(child) or ""
        parts += (space, text, space, child.tail or "")
    return "".join(parts)


def own_text(element: etree._Element) -> str:
    """An element's text without that of its children."""
    return "".join([element.text or "", *(child.tail or "" for child in element)])


def in_full(element: etree._Element) -> dict[str, Any] | str:
    """An element with its attributes, text and children."""
    found: dict[str, Any] = attributes_of(element)
    for child in element:
        if isinstance(child.tag, str):
            found.setdefault(child.tag, []).append(in_full(child))
    text = own_text(element)
    if found and text.strip():
        found["#text"] = text
    return found or text
