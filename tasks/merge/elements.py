"""Converts programmes and channels of feeds to XML elements of the merged guide.

The bytes of a programme are copied, except for the id of a renamed channel, changed times, and times in a
format that some players misread. (Tvheadend reads a time without an offset as local time.) Elements that are
not well-formed are repaired as in the stage ingest.
"""

import datetime
import html
import re
from collections.abc import Sequence
from functools import lru_cache
from xml.parsers import expat

import lxml.etree as etree

from tasks.ingest.encoding import PLACEHOLDERS, Encoding
from tasks.ingest.xmltv.fallback.elements import parse_element
from tasks.ingest.xmltv.text import repair
from tasks.ingest.xmltv.times import parse_time
from tasks.merge.index import Channel

_START_TAG = re.compile(rb"""<programme((?:[^>"']++|"[^"]*+"|'[^']*+')*+)>""")
_ATTRIBUTE = re.compile(rb"""\s+([\w:.-]+)\s*=\s*("[^"]*"|'[^']*')""")
_PORTABLE_TIME = re.compile(rb"\d{14} [+-]\d{4}")
_INVALID_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CACHE_SIZE = 1 << 16  # a cache helps because most programmes share times with other programmes
_EPOCH = datetime.datetime(1970, 1, 1)


def rewrite_programme(element: bytes, channel: str, start: int, stop: int | None) -> bytes:
    """Returns a programme element with another channel and other times. All other bytes are unchanged.

    Args:
        element: Programme element as in the feed.
        channel: Id of the channel in the merged guide.
        start: New start in microseconds since 1970 UTC.
        stop: New stop in microseconds since 1970 UTC; None removes the attribute.
    """
    tag = _START_TAG.match(element)
    if tag is None:
        return element
    values = {b"start": start, b"stop": stop, b"channel": channel}
    pieces, copied_end = [], 0
    for match in _ATTRIBUTE.finditer(tag[1]):
        name, text = match.groups()
        if name not in values:
            continue
        value = values.pop(name)
        if not _has_value(text[1:-1], value):
            pieces += [tag[1][copied_end : match.start()], _format_attribute(name, value)]
            copied_end = match.end()
    new_attributes = b"".join(_format_attribute(*item) for item in values.items())
    if not pieces and not new_attributes:
        return element
    rest = tag[1][copied_end:]
    return b"".join([b"<programme", *pieces, rest, new_attributes, b">", element[tag.end() :]])


@lru_cache(_CACHE_SIZE)
def _has_value(text: bytes, value: str | int | None) -> bool:
    """Returns whether the text of an attribute is ``value``, in a format that all players read."""
    if isinstance(value, str):
        return html.unescape(text.decode("utf-8", "replace")) == value
    return _PORTABLE_TIME.fullmatch(text) is not None and parse_time(text.decode()) == value


@lru_cache(_CACHE_SIZE)
def _format_attribute(name: bytes, value: str | int | None) -> bytes:
    """Formats an XML attribute with a channel id or a time. Returns b"" if the value is None."""
    if value is None:
        return b""
    if isinstance(value, str):
        return b' %b="%b"' % (name, html.escape(value).encode())
    moment = _EPOCH + datetime.timedelta(microseconds=value)
    return b' %b="%b"' % (name, moment.strftime("%Y%m%d%H%M%S +0000").encode())


def repair_elements(elements: Sequence[bytes], encoding: Encoding) -> list[bytes]:
    """Repairs programmes that are not well-formed XML in UTF-8. Omits programmes that cannot be repaired."""
    if _is_well_formed(b"".join(elements)):
        return list(elements)
    return [text for element in elements if (text := _repair(element, encoding))]


def _repair(element: bytes, encoding: Encoding) -> bytes:
    """Returns a well-formed programme in UTF-8, or b"" if the programme cannot be repaired."""
    if _is_well_formed(element):
        return element
    text, invalid_count = repair(element, encoding)
    if invalid_count:
        text = PLACEHOLDERS.sub("\N{REPLACEMENT CHARACTER}", text.decode()).encode()
    if _is_well_formed(text):
        return text
    tree = parse_element(text)
    programme = None if tree is None else tree.find("programme")
    return b"" if programme is None else etree.tostring(programme, encoding="utf-8", with_tail=False)


def _is_well_formed(content: bytes) -> bool:
    """Returns whether an XML parser accepts ``content`` as the content of an element."""
    parser = expat.ParserCreate("utf-8")
    try:
        parser.Parse(b"<tv>" + content + b"</tv>", True)
    except expat.ExpatError:
        return False
    return True


def make_channel_element(channel: Channel, id_: str, names: Sequence[str]) -> bytes:
    """Returns the XML element of a channel with the id ``id_``, and ``names`` before the feed's names."""
    element = etree.fromstring(channel.xml) if channel.xml else etree.Element("channel")
    element.set("id", id_)
    new_names = [name for name in names if name not in channel.names]
    if not channel.names and not new_names:
        new_names = [channel.id]  # xmltv.dtd requires a name
    for position, name in enumerate(new_names):
        display_name = etree.Element("display-name")
        display_name.text = _INVALID_IN_XML.sub("", name)
        element.insert(position, display_name)
    return etree.tostring(element, encoding="utf-8")
