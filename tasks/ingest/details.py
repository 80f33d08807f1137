"""What programmes say beyond what a schedule needs: read as it comes, one dictionary a programme that says anything.

Most guides say little here or something of every programme; either way a programme that says nothing costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import lxml.etree as etree
import numpy as np
import pyarrow as pa

from storage.catalogue.rows import DETAILS
from tasks.ingest.extra import attributes_of, in_full, own_text
from tasks.ingest.text import clean
from tasks.ingest.times import parse_time

_MINUTES = {"seconds": 1 / 60, "minutes": 1.0, "hours": 60.0}
_NUMBER = re.compile(r"\d{1,6}(?:[.,]\d{1,4})?", re.ASCII)
_TEXTS = {"sub-title": "sub_title", "desc": "description"}
_LISTS = {"keyword": "keywords", "country": "countries"}
_LANGUAGES = {"language": "language", "orig-language": "original_language"}
_FLAGS = {"new": "is_new", "premiere": "is_premiere", "live": "is_live"}


class Details:
    """The details of a part of a feed.

    Args:
        zone: Of times that name none.

    Attributes:
        rows: The columns of a row.
        originals: Row, element and text before it was cleaned.
        elements: Of a row, what no column holds (extra.py).
        description_language: Of the description of a row.
    """

    def __init__(self, zone: str = "") -> None:
        self.zone = zone
        self.rows: dict[int, dict[str, Any]] = {}
        self.originals: list[tuple[int, str, str]] = []
        self.elements: dict[int, dict[str, Any]] = {}
        self.description_language: dict[int, str] = {}

    def take(self, row: int, element: etree._Element) -> None:
        """Notes what an element says of the programme of a row; elements that say nothing to us are passed over."""
        parent = element.getparent()
        if parent is None or parent.tag in _NOT_PROGRAMMES:
            return
        said = self.rows.get(row)
        if said is None:
            said = {}
        says_more = _SAYS_MORE.get(element.tag)
        if says_more is not None and says_more(element, said):
            self._keep(row, element, parent)
        read = _READERS.get(element.tag)
        if read is not None:
            read(self, row, said, element)
            if said:
                self.rows[row] = said

    def batch(self, kept: np.ndarray | None) -> pa.RecordBatch:
        """The details as Arrow; ``kept`` (bool, one a row) leaves out the rows that were rejected and closes the gaps."""
        place = None if kept is None else np.cumsum(kept) - 1
        rows = [{"row": row if place is None else int(place[row]), **said} for row, said in self.rows.items() if kept is None or kept[row]]
        columns = [pa.array([said.get(field.name) for said in rows], field.type) for field in DETAILS]
        return pa.RecordBatch.from_arrays(columns, schema=DETAILS)

    def _keep(self, row: int, element: etree._Element, parent: etree._Element) -> None:
        """Notes all elements of a name, once one of them says what no column holds."""
        tag = element.tag
        kept = self.elements.setdefault(row, {})
        if tag in kept:
            return
        siblings = list(parent.iterchildren(tag))
        if tag in _LISTS:
            kept[tag] = [attributes_of(each) for each in siblings if clean(each.text or "")]
        else:
            first = attributes_of if tag in _LANGUAGES else in_full  # a column has its text
            kept[tag] = [first(siblings[0]), *map(in_full, siblings[1:])]

    def _text(self, row: int, said: dict[str, Any], element: etree._Element) -> None:
        """The first description; further titles, sub-titles and descriptions."""
        raw = "".join(element.itertext()) if len(element) else element.text or ""
        text = clean(raw)
        name = _TEXTS.get(element.tag, "title")
        is_first = name == "description" and "description" not in said
        if is_first and text not in (raw, raw.strip()):
            self.originals.append((row, name, raw))
        if not text:
            return
        if is_first:
            said["description"] = text
            if language := element.get("lang"):
                self.description_language[row] = language
        else:
            said.setdefault("translations", []).append({"element": name, "text": text, "language": clean(element.get("lang", "")) or None})

    def _list(self, row: int, said: dict[str, Any], element: etree._Element) -> None:
        text = clean(element.text or "")
        if text:
            said.setdefault(_LISTS[element.tag], []).append(text)

    def _language(self, row: int, said: dict[str, Any], element: etree._Element) -> None:
        said.setdefault(_LANGUAGES[element.tag], clean(element.text or "") or None)

    def _flag(self, row: int, said: dict[str, Any], element: etree._Element) -> None:
        said[_FLAGS[element.tag]] = True

    def _shown(self, row: int, said: dict[str, Any], element: etree._Element) -> None:
        said["previously_shown"] = True
        said["previously_shown_at"] = parse_time(element.get("start", ""), self.zone)

    def _rating(self, row: int, said: dict[str, Any], element: etree._Element) -> None:
        value = clean(element.findtext("value") or element.text or "")
        if value:
            said.setdefault("ratings" if element.tag == "rating" else "star_ratings", []).append({"system": element.get("system"), "value": value})

    def _credits(self, row: int, said: dict[str, Any], element: etree._Element) -> None:
        people = []
        says_more = False
        for person in element.iterchildren("*"):
            names = person.keys()
            says_more = says_more or len(person) > 0 or (len(names) > 0 and names != ["role"])
            if name := clean(own_text(person)):
                character = clean(person.get("role", "")) or None if names else None
                people.append({"role": person.tag, "name": name, "character": character})
        parent = element.getparent()
        if says_more and parent is not None:
            self._keep(row, element, parent)
        if people:
            said.setdefault("credits", []).extend(people)

    def _length(self, row: int, said: dict[str, Any], element: etree._Element) -> None:
        number = _NUMBER.fullmatch((element.text or "").strip())
        scale = _MINUTES.get(element.get("units", "minutes"))
        if number is not None and scale is not None:
            said["length_minutes"] = float(number[0].replace(",", ".")) * scale

    def _icon(self, row: int, said: dict[str, Any], element: etree._Element) -> None:
        said.setdefault("icon", clean(element.get("src", "")) or None)

    def _url(self, row: int, said: dict[str, Any], element: etree._Element) -> None:
        text = clean(element.text or "")
        if text:
            said.setdefault("urls", []).append(text)


def _has_other_attributes(element: etree._Element, held: str = "") -> bool:
    """Whether it has attributes but for one that a column holds."""
    names = element.keys()  # half the time of attrib
    return len(names) > 1 or (len(names) == 1 and names[0] != held)


def _rates_more(element: etree._Element, said: Mapping[str, Any]) -> bool:
    """Whether a rating is more than a value of a system."""
    is_plain = not len(element) or (len(element) == 1 and element[0].tag == "value")
    return not is_plain or _has_other_attributes(element, "system")


def _lasts_otherwise(element: etree._Element, said: Mapping[str, Any]) -> bool:
    """Whether a length is anything but minutes."""
    number = _NUMBER.fullmatch((element.text or "").strip())
    return number is None or element.get("units", "minutes") != "minutes"


def _shown_more(element: etree._Element, said: Mapping[str, Any]) -> bool:
    """Whether an earlier showing has a channel, or an instant that is no time."""
    start = element.get("start")
    return _has_other_attributes(element, "start") or (start is not None and parse_time(start) is None)


_Reader = Callable[[Details, int, dict[str, Any], etree._Element], None]
_SaysMore = Callable[[etree._Element, Mapping[str, Any]], object]  # true or not
# What else may hold a url, an icon, a language.
_NOT_PROGRAMMES = frozenset(
    "channel tv programmes subtitles credits audio video rating star-rating director actor "  # noqa: SIM905
    "writer adapter producer composer editor presenter commentator guest".split()
)
_READERS: Mapping[str, _Reader] = {
    "title": Details._text, "sub-title": Details._text, "desc": Details._text, "keyword": Details._list, "country": Details._list,
    "language": Details._language, "orig-language": Details._language, "new": Details._flag, "premiere": Details._flag, "live": Details._flag,
    "previously-shown": Details._shown, "star-rating": Details._rating, "rating": Details._rating, "credits": Details._credits,
    "length": Details._length, "icon": Details._icon, "url": Details._url,
}  # fmt: skip
# Of each element, whether it says what no column holds, given what the elements before it said.
_SAYS_MORE: Mapping[str, _SaysMore] = {
    **dict.fromkeys(("video", "audio", "subtitles", "last-chance", "review", "image"), lambda *_: True),
    **dict.fromkeys(_FLAGS, lambda element, said: element.text or element.keys()),
    **dict.fromkeys((*_LISTS, "url"), lambda element, said: element.keys()),
    **dict.fromkeys(_LANGUAGES, lambda element, said: element.keys() or _LANGUAGES[element.tag] in said),
    "icon": lambda element, said: _has_other_attributes(element, "src") or "icon" in said,
    "rating": _rates_more,
    "star-rating": _rates_more,
    "length": _lasts_otherwise,
    "previously-shown": _shown_more,
}
