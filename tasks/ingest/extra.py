"""What XMLTV says and no column holds, as one JSON object a programme or channel: nothing of xmltv.dtd is lost.

Keys are XMLTV's names: ``@name`` an attribute of the element itself, any other a list of its elements of that name. An
element is a string where it has text alone, else an object of its attributes (``@…``), its text (``#text``) and its own
elements; texts are as the feed has them. Where a column holds the text, the object is without it, in the column's order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import lxml.etree as etree
import pyarrow as pa
import pyarrow.compute as pc

from tasks.ingest.text import clean

_UNIT, _GROUP = "\x1e", "\x1d"  # no XML holds them
_KEYS = ("category", "sub-title", "desc")


def dumps(said: Mapping[str, Any]) -> str:
    """JSON, the same for the same content."""
    return json.dumps(said, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def attributes_of(element: etree._Element, held: frozenset[str] = frozenset()) -> dict[str, str]:
    """An element's attributes, but for those that columns hold."""
    return {f"@{name}": value for name, value in element.items() if name not in held}


def own_text(element: etree._Element) -> str:
    """An element's text without that of the elements in it."""
    if not len(element):
        return element.text or ""
    return "".join([element.text or "", *(child.tail or "" for child in element)])


def in_full(element: etree._Element) -> dict[str, Any] | str:
    """An element with everything in it."""
    said: dict[str, Any] = attributes_of(element)
    for child in element:
        if isinstance(child.tag, str):
            said.setdefault(child.tag, []).append(in_full(child))
    text = own_text(element)
    if not said:
        return text
    if text.strip():
        said["#text"] = text
    return said


def channel_extra(channel: etree._Element) -> str | None:
    """The JSON of a channel."""
    names = [attributes_of(name) for name in channel.iterchildren("display-name") if clean(name.text or "")]
    icons, urls = list(channel.iterchildren("icon")), list(channel.iterchildren("url"))
    said: dict[str, Any] = attributes_of(channel, frozenset({"id"}))
    if any(names):
        said["display-name"] = names
    if len(icons) > 1 or any(len(icon.attrib) > 1 for icon in icons):
        said["icon"] = [in_full(icon) for icon in icons]
    if any(url.attrib for url in urls):
        said["url"] = [in_full(url) for url in urls]
    return dumps(said) if said else None


def languages(categories: pa.ListArray, sub_title: pa.Array, description: pa.Array) -> pa.Array:
    """JSON objects of the ``lang`` of elements whose texts columns hold; null where none is given.

    Args:
        categories: Of each category of a programme.
        sub_title: Of its sub-title.
        description: Of its first description.
    """
    if all(column.null_count == len(column) for column in (categories.flatten(), sub_title, description)):
        return pa.nulls(len(categories), pa.string())
    filled = pa.ListArray.from_arrays(categories.offsets, categories.values.fill_null(""))
    joined = pc.binary_join(filled, _UNIT)  # pyright: ignore[reportAttributeAccessIssue]
    keys = pc.binary_join_element_wise(  # pyright: ignore[reportAttributeAccessIssue]
        joined, sub_title.fill_null(""), description.fill_null(""), _GROUP
    ).dictionary_encode()
    return pa.array([_spelled(key) for key in keys.dictionary.to_pylist()], pa.string()).take(keys.indices)


def _spelled(key: str) -> str | None:
    given = {name: group.split(_UNIT) for name, group in zip(_KEYS, key.split(_GROUP))}
    said = {name: [{"@lang": one} if one else {} for one in each] for name, each in given.items() if any(each)}
    return dumps(said) if said else None


def together(found: pa.Array, attributes: pa.Array, elements: Mapping[int, Mapping[str, Any]]) -> pa.Array:
    """The objects with those of the programmes' attributes, and with the elements of some rows, as one column."""
    if attributes.null_count == len(attributes) and not elements:
        return found
    objects = found.to_pylist()
    for row, text in enumerate(attributes.to_pylist()):
        if text is not None:  # "@" sorts before letters
            objects[row] = f"{text[:-1]},{objects[row][1:]}" if objects[row] else text
    for row, said in elements.items():
        objects[row] = dumps({**json.loads(objects[row] or "{}"), **said})
    return pa.array(objects, pa.string())
