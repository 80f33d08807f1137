"""Parses a part of an XMLTV file, which may be damaged, into lxml elements.

Well-formed content is parsed at once by a strict parser. Otherwise each programme is parsed separately:
unchanged, then after balance.py has closed its elements, then by the lenient parser of libxml2. If all three
fail, the programme is rejected. The parsers see no DOCTYPE and only the five predefined entities, so nothing
is expanded or fetched.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import lxml.etree as etree

from tasks.ingest.encoding import Encoding, show_invalid
from tasks.ingest.xmltv.fallback.balance import PARENTS, balance
from tasks.ingest.xmltv.frames import find_programmes, split_at_programmes
from tasks.ingest.xmltv.text import repair

PIECE_BYTES = 64 << 10  # approximate bytes per parser call; with 1 MiB, parsing takes 1.5 times as long
_PARSER_OPTIONS: Mapping[str, Any] = {
    **{"encoding": "utf-8", "no_network": True, "remove_comments": True, "remove_pis": True},
    **dict.fromkeys(("resolve_entities", "load_dtd", "huge_tree", "collect_ids"), False),
}
_STRICT, _LENIENT = etree.XMLParser(**_PARSER_OPTIONS), etree.XMLParser(recover=True, **_PARSER_OPTIONS)
_LINE_BREAK_TAGS = frozenset("br p div li ul ol tr td hr h1 h2 h3 h4 h5 h6".split())  # noqa: SIM905


def parse_trees(content: bytes, line: int) -> Iterator[tuple[etree._Element | None, bytes, int]]:
    """Parses repaired bytes of an XMLTV file into XML trees that contain channels and programmes.

    Args:
        content: Bytes with complete programmes, after ``repair`` (text.py).
        line: Line number of the content in the file.

    Yields:
        (Tree, parsed bytes, line number of these bytes). The tree is None for a programme that cannot be
        parsed.
    """
    for begin, end in split_at_programmes(content, PIECE_BYTES):
        piece = content[begin:end]
        tree = _parse(piece, _STRICT)
        if tree is not None:
            yield tree, piece, line
        else:
            yield from _parse_separately(piece, line)
        line += piece.count(b"\n")


def _parse_separately(content: bytes, line: int) -> Iterator[tuple[etree._Element | None, bytes, int]]:
    """Parses the programmes in damaged content one by one. Yields the items of ``parse_trees``."""
    starts = [start for start, _ in find_programmes(content)]
    for begin, end in pairwise(sorted({0, *starts, len(content)})):
        piece = content[begin:end]
        tree = parse_element(piece) if piece.strip() else None
        if (begin > 0 or 0 in starts[:1]) and (tree is None or tree.find("programme") is None):
            yield None, piece, line
        elif tree is not None:
            yield tree, piece, line
        line += piece.count(b"\n")


def parse_element(content: bytes) -> etree._Element | None:
    """Parses a single channel or programme, which may be damaged, as the content of an element ``tv``.

    The parsers are tried in the order that the docstring of the module states. Returns None if all fail.
    """
    tree = _parse(content, _STRICT)
    if tree is None:
        balanced_xml = balance(content.decode("utf-8", "replace")).encode()
        tree = _parse(balanced_xml, _STRICT)
        if tree is None:
            tree = _parse(balanced_xml, _LENIENT)
    return tree


def root_attributes(text: bytes, encoding: Encoding) -> list[tuple[str, str]]:
    """Parses the attributes of the root element. Returns (name, value) of each readable attribute."""
    content = repair(text, encoding)[0].rstrip(b"/ \t\r\n")
    try:
        root = etree.fromstring(b"<tv " + content + b"/>", _LENIENT)
    except etree.XMLSyntaxError:
        return []
    return [] if root is None else [(name, show_invalid(value)) for name, value in root.items()]


def _parse(content: bytes, parser: etree.XMLParser) -> etree._Element | None:
    """Parses content as the content of an element ``tv``. Returns None if the parser fails."""
    try:
        return etree.fromstring(b"<tv>" + content + b"</tv>", parser)
    except etree.XMLSyntaxError:
        return None


def attributes_of(element: etree._Element, excluded: frozenset[str] = frozenset()) -> dict[str, str]:
    """Returns the attributes of an element that are not in ``excluded``, with ``@`` before the names."""
    return {f"@{name}": value for name, value in element.items() if name not in excluded}


def full_text(element: etree._Element) -> str | None:
    """Returns the text of an element and of the HTML elements in it, without child elements of XMLTV.

    HTML elements that break lines become spaces. Returns None for an empty element.
    """
    if not len(element):
        return element.text
    parts = [element.text or ""]
    for child in element:
        space = " " if child.tag in _LINE_BREAK_TAGS else ""
        text = "" if child.tag in PARENTS else full_text(child) or ""
        parts += (space, text, space, child.tail or "")
    return "".join(parts)


def to_object(element: etree._Element) -> dict[str, Any] | str:
    """Converts an element with attributes, text and children to JSON types (format: extra.py)."""
    content: dict[str, Any] = attributes_of(element)
    for child in element:
        if isinstance(child.tag, str):
            content.setdefault(child.tag, []).append(to_object(child))
    text = "".join([element.text or "", *(child.tail or "" for child in element)])
    if content and text.strip():
        content["#text"] = text
    return content or text
