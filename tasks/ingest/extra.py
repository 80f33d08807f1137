"""What no column holds, as a JSON object per programme or channel: nothing of xmltv.dtd is lost.

Keys are XMLTV's names: ``@name`` an attribute of the element itself, any other a list of its elements of
that name. An element is a string where it has text alone, else an object of its attributes (``@…``), its
text (``#text``) and its own elements; texts are as the feed has them. Where a column holds the text, the
object is without it, in the column's order.
"""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tasks.ingest.encoding import show_invalid

_UNIT, _GROUP = "\x1e", "\x1d"  # no XML holds them
_KEYS = ("category", "sub-title", "desc")


def dumps(content: Mapping[str, Any]) -> str:
    """JSON, the same for the same content."""
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return show_invalid(text, prefix="\\\\x")  # JSON escapes the backslash


def languages(categories: pa.ListArray, sub_title: pa.Array, description: pa.Array) -> pa.Array:
    """JSON objects of the ``lang`` of elements whose texts columns hold; null where none is given."""
    if all(column.null_count == len(column) for column in (categories.flatten(), sub_title, description)):
        return pa.nulls(len(categories), pa.string())
    filled = pa.ListArray.from_arrays(categories.offsets, categories.values.fill_null(""))
    joined = pc.binary_join(filled, _UNIT)  # pyright: ignore[reportAttributeAccessIssue]
    keys = pc.binary_join_element_wise(  # pyright: ignore[reportAttributeAccessIssue]
        joined, sub_title.fill_null(""), description.fill_null(""), _GROUP
    ).dictionary_encode()
    return pa.array([_languages(key) for key in keys.dictionary.to_pylist()], pa.string()).take(keys.indices)


def _languages(key: str) -> str | None:
    given = {name: group.split(_UNIT) for name, group in zip(_KEYS, key.split(_GROUP)) if group.strip(_UNIT)}
    found = {name: [{"@lang": one} if one else {} for one in each] for name, each in given.items()}
    return dumps(found) if found else None


def together(objects: pa.Array, attributes: pa.Array, elements: Mapping[int, Mapping[str, Any]]) -> pa.Array:
    """The objects with those of attributes, and with the elements of some rows."""
    if attributes.null_count == len(attributes) and not elements:
        return objects
    merged = objects.to_pylist()
    for row, text in enumerate(attributes.to_pylist()):
        if text is not None:  # "@" sorts before letters
            merged[row] = f"{text[:-1]},{merged[row][1:]}" if merged[row] else text
    for row, added in elements.items():
        merged[row] = dumps({**json.loads(merged[row] or "{}"), **added})
    return pa.array(merged, pa.string())
