"""Converts XML elements of programmes and channels to rows of the catalogue.

Content without a column is converted to JSON types (extra.py).
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import lxml.etree as etree

from tasks.ingest.columns import LIST_COLUMNS
from tasks.ingest.extra import to_json
from tasks.ingest.xmltv.fallback.balance import CHILDREN, PARENTS, PEOPLE
from tasks.ingest.xmltv.fallback.elements import attributes_of, full_text, to_object
from tasks.ingest.xmltv.scan import ATTRIBUTE_COLUMNS, STOP_ALIAS
from tasks.ingest.xmltv.times import parse_time
from tasks.text.clean import clean

_MINUTES = {  # unit -> minutes
    **dict.fromkeys("seconds second secs sec s".split(), 1 / 60),  # noqa: SIM905
    **dict.fromkeys("minutes minute mins min m".split(), 1.0),  # noqa: SIM905
    **dict.fromkeys("hours hour hrs hr h".split(), 60.0),  # noqa: SIM905
}
LENGTH_TOLERANCE = 1.0  # maximum difference in minutes between a length without units and stop - start
_NUMBER = re.compile(r"\d{1,6}(?:[.,]\d{1,4})?", re.ASCII)
_COLUMNS = {  # element -> column
    **{"keyword": "keywords", "country": "countries", "url": "urls", "sub-title": "sub_title"},
    **{"language": "language", "orig-language": "original_language", "desc": "description"},
    **{"new": "is_new", "premiere": "is_premiere", "live": "is_live"},
    **{"rating": "ratings", "star-rating": "star_ratings"},
}
# Children of these elements, such as url, icon and language, do not describe the programme itself.
_OTHER_PARENTS = frozenset({"programmes", *CHILDREN} - {"programme"})
_Row = dict[str, Any]


def _store_text(row: _Row, element: etree._Element, zone: str) -> None:
    """Stores the first description, and further titles, sub-titles and descriptions as translations."""
    raw = full_text(element) or ""
    text = clean(raw)
    name = _COLUMNS.get(element.tag, "title")
    if name == "description" and not clean(row.get("description", "")):
        if text or "description" not in row:
            row["description"], row["description_language"] = raw, element.get("lang")
    elif text:
        language = clean(element.get("lang", "")) or None
        translation = {"element": name, "text": text, "language": language}
        row["details"].setdefault("translations", []).append(translation)


def _store_in_list(row: _Row, element: etree._Element, zone: str) -> None:
    if text := clean(full_text(element) or ""):
        row["details"].setdefault(_COLUMNS[element.tag], []).append(text)


def _store_language(row: _Row, element: etree._Element, zone: str) -> None:
    row["details"].setdefault(_COLUMNS[element.tag], clean(full_text(element) or "") or None)


def _store_flag(row: _Row, element: etree._Element, zone: str) -> None:
    row["details"][_COLUMNS[element.tag]] = True


def _store_previously_shown(row: _Row, element: etree._Element, zone: str) -> None:
    shown_at = parse_time(element.get("start", ""), zone)
    row["details"] |= {"previously_shown": True, "previously_shown_at": shown_at}


def _store_rating(row: _Row, element: etree._Element, zone: str) -> None:
    if value := clean(element.findtext("value") or full_text(element) or ""):
        rating = {"system": clean(element.get("system", "")) or None, "value": value}
        row["details"].setdefault(_COLUMNS[element.tag], []).append(rating)


def _store_credits(row: _Row, element: etree._Element, zone: str) -> None:
    people = []
    for person in element.iterchildren(*PEOPLE):
        if name := clean(full_text(person) or ""):
            character = clean(person.get("role", "")) or None
            people.append({"role": person.tag, "name": name, "character": character})
    if people:
        row["details"].setdefault("credits", []).extend(people)


def _store_length(row: _Row, element: etree._Element, zone: str) -> None:
    """Stores the length in minutes in ``row``. Infers an unknown unit from start and stop."""
    match = _NUMBER.fullmatch((element.text or "").strip())
    if match is None:
        return
    number = float(match[0].replace(",", "."))
    unit_minutes = _MINUTES.get(element.get("units", "").strip().lower())
    if unit_minutes is None:
        start, stop = (parse_time(row[name] or "", zone) for name in ("start", "stop"))
        duration = (stop - start) / 60e6 if start is not None and stop is not None else math.nan
        units = set(_MINUTES.values())
        unit_minutes = next(
            (unit for unit in units if abs(number * unit - duration) < LENGTH_TOLERANCE), None
        )
    if unit_minutes is not None:
        row["details"]["length_minutes"] = number * unit_minutes


def _store_icon(row: _Row, element: etree._Element, zone: str) -> None:
    row["details"].setdefault("icon", clean(element.get("src", "")) or None)


def _has_other_attributes(element: etree._Element, attribute: str) -> bool:
    """Returns whether an element has attributes other than ``attribute``."""
    names = element.keys()  # twice as fast as attrib
    return len(names) > 1 or (len(names) == 1 and names[0] != attribute)


def _rating_has_extra(element: etree._Element, details: Mapping[str, Any]) -> bool:
    is_plain = not len(element) or (len(element) == 1 and element[0].tag == "value")
    return not is_plain or _has_other_attributes(element, "system")


def _length_has_extra(element: etree._Element, details: Mapping[str, Any]) -> bool:
    is_number = _NUMBER.fullmatch((element.text or "").strip())
    return not is_number or element.get("units") != "minutes" or _has_other_attributes(element, "units")


def _previously_shown_has_extra(element: etree._Element, details: Mapping[str, Any]) -> bool:
    start = element.get("start")
    return _has_other_attributes(element, "start") or (start is not None and parse_time(start) is None)


def _credits_have_extra(element: etree._Element, details: Mapping[str, Any]) -> bool:
    return any(
        len(person) or person.tag not in PEOPLE or _has_other_attributes(person, "role")
        for person in element.iterchildren("*")
    )


class _ElementReader(NamedTuple):
    """Functions and flags that determine how the child elements of a programme with one name are stored."""

    store: Callable[[_Row, etree._Element, str], None] | None  # stores an element in columns; None: no column
    # returns whether an element has content without a column; arguments: element, details of the programme
    has_extra: Callable[[etree._Element, Mapping[str, Any]], object] = lambda element, details: False
    in_list: bool = False  # whether a column has the texts of all elements with this name
    first_in_column: bool = False  # whether a column has the text of the first element with this name

    def read_element(self, row: _Row, element: etree._Element, zone: str) -> None:
        """Stores an element in the columns of ``row``. Content without a column becomes JSON."""
        parent = element.getparent()
        if parent is None or parent.tag in _OTHER_PARENTS:
            return
        if element.tag not in row["elements"] and self.has_extra(element, row["details"]):
            siblings = list(parent.iterchildren(element.tag))
            if self.in_list:
                objects = [attributes_of(sibling) for sibling in siblings if clean(sibling.text or "")]
            else:
                read_attributes = attributes_of if self.first_in_column else to_object
                objects = [read_attributes(siblings[0]), *map(to_object, siblings[1:])]
            row["elements"][element.tag] = objects
        if self.store is not None:
            self.store(row, element, zone)


_AS_JSON = _ElementReader(None, lambda element, details: True)
_FLAG = _ElementReader(_store_flag, lambda element, details: element.text or element.keys())
_TEXT_LIST = _ElementReader(_store_in_list, lambda element, details: element.keys(), in_list=True)
_LANGUAGE = _ElementReader(
    _store_language,
    lambda element, details: element.keys() or _COLUMNS[element.tag] in details,
    first_in_column=True,
)
_ICON = _ElementReader(
    _store_icon, lambda element, details: _has_other_attributes(element, "src") or "icon" in details
)
READERS: Mapping[str, _ElementReader] = {
    **dict.fromkeys(("video", "audio", "subtitles", "last-chance", "review", "image"), _AS_JSON),
    **dict.fromkeys(("title", "sub-title", "desc"), _ElementReader(_store_text)),
    **dict.fromkeys(("new", "premiere", "live"), _FLAG),
    **dict.fromkeys(("keyword", "country"), _TEXT_LIST),
    **dict.fromkeys(("language", "orig-language"), _LANGUAGE),
    **dict.fromkeys(("rating", "star-rating"), _ElementReader(_store_rating, _rating_has_extra)),
    "url": _TEXT_LIST._replace(in_list=False),
    "icon": _ICON,
    "credits": _ElementReader(_store_credits, _credits_have_extra),
    "length": _ElementReader(_store_length, _length_has_extra),
    "previously-shown": _ElementReader(_store_previously_shown, _previously_shown_has_extra),
}
_ATTRIBUTES_WITH_COLUMN = frozenset(ATTRIBUTE_COLUMNS)


def read_tree(
    root: etree._Element, rows: list[dict[str, Any]], channels: list[tuple[Any, ...]], zone: str
) -> None:
    """Reads all programmes and channels in an XML tree.

    The case of element names is ignored: ``<New/>`` is ``<new/>``. Elements that are not part of XMLTV are
    stored as JSON.

    Args:
        root: Root of the tree.
        rows: List to which the function appends programmes (see ``RawColumns.from_rows``).
        channels: List to which the function appends channels (schema: CHANNELS in storage/catalogue/rows.py).
        zone: Time zone of the times without an offset; empty means UTC.
    """
    for element in root.iter("programme", "channel"):
        if element.tag == "channel":
            _read_channel(element, channels)
        else:
            rows.append(_new_row(element))
            _read_programme(element, rows[-1], zone)


def _new_row(programme: etree._Element) -> _Row:
    """Creates the row of a programme from its attributes. Columns of elements are empty."""
    is_plain = _ATTRIBUTES_WITH_COLUMN.issuperset(programme.keys())
    attributes = {} if is_plain else attributes_of(programme, _ATTRIBUTES_WITH_COLUMN)
    row: _Row = {name: programme.get(name) for name in ATTRIBUTE_COLUMNS}
    row["stop"] = programme.get(STOP_ALIAS) if row["stop"] is None else row["stop"]
    row |= {name: [] for name in LIST_COLUMNS} | {"details": {}, "elements": {}}
    row["attributes"] = to_json(attributes) if attributes else None
    return row


def _read_programme(programme: etree._Element, row: _Row, zone: str) -> None:
    """Stores the elements of a programme in ``row``, up to a nested programme.

    A programme contains the next programme if its end tag is missing.
    """
    for element in programme.iterdescendants():
        tag = element.tag
        if tag not in PARENTS and "tv" not in PARENTS.get(tag.lower(), {"tv"}):
            tag = element.tag = tag.lower()
        if tag == "programme":
            break
        if tag == "category":
            row["categories"].append(full_text(element))
            row["category_languages"].append(element.get("lang"))
        elif tag == "episode-num":
            row["episode_numbers"].append(full_text(element))
            row["episode_systems"].append(element.get("system"))
        elif tag == "date":
            row["date"] = row.get("date") or full_text(element)
        elif tag == "title" and "title" not in row:
            text = full_text(element)
            if text and not text.isspace():
                row["title"], row["title_language"] = text, element.get("lang")
        elif tag == "sub-title" and not row.get("sub_title"):
            row["sub_title"], row["sub_title_language"] = full_text(element), element.get("lang")
        elif tag in READERS:
            READERS[tag].read_element(row, element, zone)
        elif (parent := element.getparent()) is not None and parent.tag == "programme":
            row["elements"].setdefault(tag, []).append(to_object(element))


def _read_channel(element: etree._Element, channels: list[tuple[Any, ...]]) -> None:
    """Appends a channel to ``channels``, unless its id is blank."""
    channel = element.get("id", "")  # not cleaned, because programmes refer to it
    if not channel.strip():
        return
    texts = {
        tag: [text for child in element.iterchildren(tag) if (text := clean(child.text or ""))]
        for tag in ("display-name", "lcn", "url")
    }
    icons, urls = list(element.iterchildren("icon")), list(element.iterchildren("url"))
    names = [attributes_of(name) for name in element.iterchildren("display-name") if clean(name.text or "")]
    details: dict[str, Any] = attributes_of(element, frozenset({"id"}))
    if any(names):
        details["display-name"] = names
    if len(icons) > 1 or any(len(icon.attrib) > 1 for icon in icons):
        details["icon"] = [to_object(icon) for icon in icons]
    if any(url.attrib for url in urls):
        details["url"] = [to_object(url) for url in urls]
    icon = clean(icons[0].get("src", "")) or None if icons else None
    display_names, number = texts["display-name"] or [channel], next(iter(texts["lcn"]), None)
    extra = to_json(details) if details else None
    channels.append((channel, display_names[0], display_names, icon, number, texts["url"], extra))
