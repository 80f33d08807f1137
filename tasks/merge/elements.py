"""Converts programmes and channels of feeds to XML elements of the merged guide.

The bytes of a programme are copied. Only these parts are written anew: the id of a renamed channel, changed
times, and times in a format that some players misread. (Tvheadend reads a time without an offset as local
time.) Elements that are not well-formed are repaired as in the stage ingest.
"""

import datetime
import html
import re
from collections.abc import Sequence
from functools import lru_cache
from xml.parsers import expat

import lxml.etree as etree

from tasks.ingest.encoding import INVALID, Encoding
from tasks.ingest.xmltv.text import repair
from tasks.ingest.xmltv.times import parse_time
from tasks.merge.index import Channel

_START_TAG = re.compile(rb"""<programme((?:[^>"']++|"[^"]*+"|'[^']*+')*+)>""")
_ATTRIBUTE = re.compile(rb"""\s+([\w:.-]+)\s*=\s*("[^"]*"|'[^']*')""")
_PORTABLE = re.compile(rb"\d{14} [+-]\d{4}")
_INVALID = re.compile(f"[{chr(INVALID + 0x80)}-{chr(INVALID + 0xFF)}]")
_XML_INVALID = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CACHED = 1 << 16  # cached values, because most programmes share times with programmes of other channels
_EPOCH = datetime.datetime(1970, 1, 1)
_PARSER = etree.XMLParser(recover=True, resolve_entities=False, remove_comments=True)


def rewrite(element: bytes, channel: str, start: int, stop: int | None) -> bytes:
    """Returns a programme element with another channel and other times. Other bytes are unchanged.

    Args:
        element: Programme element as in the feed.
        channel: Id of the channel in the merged guide.
        start, stop: Times in microseconds since 1970 UTC; a stop of None removes the attribute.
    """
    tag = _START_TAG.match(element)
    if tag is None:
        return element
    values = {b"start": start, b"stop": stop, b"channel": channel}
    parts, copied = [], 0
    for match in _ATTRIBUTE.finditer(tag[1]):
        name, text = match.groups()
        if name not in values:
            continue
        value = values.pop(name)
        if not _is_value(text[1:-1], value):
            parts += [tag[1][copied : match.start()], _attribute(name, value)]
            copied = match.end()
    added = b"".join(_attribute(*item) for item in values.items())
    if not parts and not added:
        return element
    return b"".join([b"<programme", *parts, tag[1][copied:], added, b">", element[tag.end() :]])


@lru_cache(_CACHED)
def _is_value(text: bytes, value: str | int | None) -> bool:
    """Returns whether the text of an attribute is the channel id, or a time that all players read."""
    if isinstance(value, str):
        return html.unescape(text.decode("utf-8", "replace")) == value
    return _PORTABLE.fullmatch(text) is not None and parse_time(text.decode()) == value


@lru_cache(_CACHED)
def _attribute(name: bytes, value: str | int | None) -> bytes:
    """Formats an XML attribute with a channel id or a time. Returns b"" for None."""
    if value is None:
        return b""
    if isinstance(value, str):
        return b' %b="%b"' % (name, html.escape(value).encode())
    moment = _EPOCH + datetime.timedelta(microseconds=value)
    return b' %b="%b"' % (name, moment.strftime("%Y%m%d%H%M%S +0000").encode())


def repair_elements(elements: Sequence[bytes], encoding: Encoding) -> list[bytes]:
    """Repairs elements that are not well-formed XML in UTF-8. Omits elements that cannot be repaired."""
    if _is_well_formed(b"".join(elements)):
        return list(elements)
    return [text for element in elements if (text := _repair(element, encoding))]


def _repair(element: bytes, encoding: Encoding) -> bytes:
    """Returns a well-formed element in UTF-8, or b"" if the element cannot be repaired."""
    if _is_well_formed(element):
        return element
    text, invalid_count = repair(element, encoding)
    if invalid_count:
        text = _INVALID.sub("\N{REPLACEMENT CHARACTER}", text.decode()).encode()
    if _is_well_formed(text):
        return text
    tree = etree.fromstring(text, _PARSER)
    return b"" if tree is None else etree.tostring(tree, encoding="utf-8", with_tail=False)


def _is_well_formed(content: bytes) -> bool:
    """Returns whether an XML parser accepts ``content`` as the content of an element."""
    parser = expat.ParserCreate("utf-8")
    try:
        parser.Parse(b"<tv>" + content + b"</tv>", True)
    except expat.ExpatError:
        return False
    return True


def channel_element(channel: Channel, id_: str, names: Sequence[str]) -> bytes:
    """Returns the XML element of a channel with another id, and with ``names`` before its other names."""
    element = etree.fromstring(channel.xml) if channel.xml else etree.Element("channel")
    element.set("id", id_)
    new_names = [name for name in names if name not in channel.names]
    if not channel.names and not new_names:
        new_names = [channel.id]  # xmltv.dtd requires a name
    for position, name in enumerate(new_names):
        display_name = etree.Element("display-name")
        display_name.text = _XML_INVALID.sub("", name)
        element.insert(position, display_name)
    return etree.tostring(element, encoding="utf-8")
