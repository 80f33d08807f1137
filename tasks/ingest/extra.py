"""Converts XMLTV content for which the catalogue has no column to one JSON object per programme or channel.

A key ``@name`` is an attribute of the programme or channel, and a key ``name`` is the list of its child
elements with this name. A child that has only text is a string. Any other child is an object of attributes
(``@…``), text (``#text``) and children. Texts are not cleaned. If a column contains the text of an element,
the object of the element has no ``#text``. These objects are in the order of the texts in the column.
"""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tasks.ingest.encoding import show_invalid

_UNIT, _GROUP = "\x1e", "\x1d"  # separators that are invalid in XML
# Elements whose text has a column, but whose language has no column.
_ELEMENTS_WITH_LANGUAGE = ("category", "sub-title", "desc")


def to_json(content: Mapping[str, Any]) -> str:
    """Serializes a dictionary to JSON with sorted keys. Invalid bytes become hexadecimal escapes."""
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return show_invalid(text, prefix="\\\\x")  # JSON escapes the backslash


def language_objects(
    category_languages: pa.ListArray, sub_title_languages: pa.Array, description_languages: pa.Array
) -> pa.Array:
    """Returns a JSON object per programme with the languages of categories, sub-title and description.

    The object is null if the feed states no language for the programme.
    """
    columns = (category_languages.flatten(), sub_title_languages, description_languages)
    if all(column.null_count == len(column) for column in columns):
        return pa.nulls(len(category_languages), pa.string())
    filled_lists = pa.ListArray.from_arrays(
        category_languages.offsets, category_languages.values.fill_null("")
    )
    joined_languages = pc.binary_join_element_wise(  # pyright: ignore[reportAttributeAccessIssue]
        pc.binary_join(filled_lists, _UNIT),  # pyright: ignore[reportAttributeAccessIssue]
        sub_title_languages.fill_null(""),
        description_languages.fill_null(""),
        _GROUP,
    ).dictionary_encode()
    objects = [_to_language_object(text) for text in joined_languages.dictionary.to_pylist()]
    return pa.array(objects, pa.string()).take(joined_languages.indices)


def _to_language_object(joined_languages: str) -> str | None:
    """Converts the joined languages of a programme to a JSON object; None if there are no languages."""
    groups = {
        name: group.split(_UNIT)
        for name, group in zip(_ELEMENTS_WITH_LANGUAGE, joined_languages.split(_GROUP))
        if group.strip(_UNIT)
    }
    objects = {
        name: [{"@lang": language} if language else {} for language in languages]
        for name, languages in groups.items()
    }
    return to_json(objects) if objects else None


def merge_objects(
    objects: pa.Array, attributes: pa.Array, elements: Mapping[int, Mapping[str, Any]]
) -> pa.Array:
    """Adds attributes and elements to the JSON objects of programmes.

    Args:
        objects: JSON object of each programme, or null.
        attributes: JSON object of further attributes of each programme, or null.
        elements: Row number -> further elements by name.
    """
    if attributes.null_count == len(attributes) and not elements:
        return objects
    merged_objects = objects.to_pylist()
    for row, text in enumerate(attributes.to_pylist()):
        if text is not None:  # joins two JSON objects; keys remain sorted, because "@" sorts before letters
            merged_objects[row] = f"{text[:-1]},{merged_objects[row][1:]}" if merged_objects[row] else text
    for row, row_elements in elements.items():
        merged_objects[row] = to_json({**json.loads(merged_objects[row] or "{}"), **row_elements})
    return pa.array(merged_objects, pa.string())
