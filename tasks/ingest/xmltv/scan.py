"""The common form of a frame, read without a parser: flat programmes, where every tag is one of a few.

Tags and texts are found as positions of ``<`` and ``>`` in the bytes, columns are cut out of them by Arrow,
and no string becomes a Python object: three times as fast as building elements (0.3 s against 0.9 s for
130,000 programmes). It accepts only what a strict XML parser would accept, checked as positions and
distinct tags; anything in doubt (CDATA, a ``>`` in a text, single quotes, two titles, another tag) is left
to the parser in fallback/, so that no row depends on which of the two has read it.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.ingest.columns import RawColumns
from tasks.ingest.extra import dumps

HELD = ("channel", "start", "stop")  # attributes of a programme that have columns
END = "end"  # what some guides call stop; it stays in ``extra`` as well
KINDS = {  # element: columns of its text and its language (system)
    "title": ("title", "title_language"),
    "sub-title": ("sub_title", "sub_title_language"),
    "desc": ("description", "description_language"),
    "date": ("date", ""),
    "category": ("categories", "category_languages"),
    "episode-num": ("episode_numbers", "episode_systems"),
}
_ATTRIBUTE = r'\s+([A-Za-z][\w.-]*)="([^"&]*)"'
_TAG = re.compile(rf"(/?)({'|'.join(KINDS)})((?:{_ATTRIBUTE})*)\s*(/?)", re.ASCII)
_PAIR = re.compile(_ATTRIBUTE, re.ASCII)
_FIRST_GAP = re.compile(rb"<programme\s+([A-Za-z][\w.-]*)=")
_GAP = re.compile(rb"\s+([A-Za-z][\w.-]*)=")
_OTHER = re.compile(rb"<(?!(?:/|(?:programme|%s)[\s>/]))[^\s>/]+[\s>/]" % "|".join(KINDS).encode())
_REFERENCE = re.compile(r"&(#?\w+);")
_FIVE = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_LOOK = 4096  # bytes in which a guide with other tags nearly always has one
_LESS, _GREATER, _QUOTE, _SPACE, _SLASH, _P = b'<>" /p'
_BEGIN, _END, _OPEN, _CLOSE, _EMPTY = range(5)  # roles of a tag: of a programme, of an element in it


@dataclass(frozen=True)
class _Tag:
    role: int
    kind: int
    note: str | None  # the language, or the system of an episode number


def scan(content: bytes) -> RawColumns | None:
    """The programmes of a repaired frame (text.py), or None where it is not of the common form."""
    if _OTHER.search(content, 0, _LOOK) or b"\xef\xbf" in content:  # U+FFFE and U+FFFF are not XML's
        return None
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    codes = np.frombuffer(content, np.uint8)
    less, greater = np.flatnonzero(codes == _LESS), np.flatnonzero(codes == _GREATER)
    if not len(less) or len(less) != len(greater):
        return None
    if (less + 1 >= greater).any() or (greater[:-1] >= less[1:]).any():
        return None
    breaks = np.flatnonzero(codes < _SPACE)  # in an attribute's value they would count as spaces
    before = np.searchsorted(less, breaks)
    if ((before > 0) & (breaks < greater[before - 1])).any():
        return None
    first = codes[less + 1]
    begins, ends = first == _P, (first == _SLASH) & (codes[less + 2] == _P)
    attributes = _programme_attributes(content, codes, less[begins], greater[begins])
    if attributes is None or not _all_equal(codes, less[ends], greater[ends] + 1, b"</programme>"):
        return None
    others = ~(begins | ends)
    encoded = _cut(content, less[others] + 1, greater[others]).dictionary_encode()
    forms = [_read_tag(text) for text in encoded.dictionary.to_pylist()]
    if None in forms:
        return None
    role, kind, note = np.where(begins, _BEGIN, _END), np.full(len(less), -1), np.full(len(less), -1)
    note[others] = encoded.indices.to_numpy()
    role[others] = np.array([form.role for form in forms if form], np.int64)[note[others]]
    kind[others] = np.array([form.kind for form in forms if form], np.int64)[note[others]]
    opens = role == _OPEN
    flat = (
        role[0] == _BEGIN
        and role[-1] == _END
        and (opens[:-1] == (role[1:] == _CLOSE)).all()
        and (kind[:-1] == kind[1:])[opens[:-1]].all()
        and ((role[:-1] == _END) == (role[1:] == _BEGIN)).all()
    )
    if not flat or not _blank_between(content, less, greater, opens):
        return None
    notes = pa.array([form.note for form in forms if form], pa.string())
    row = np.cumsum(begins) - 1  # of each tag
    count = int(row[-1]) + 1
    columns: dict[str, Any] = {name: attributes.get(name, pa.nulls(count, pa.string())) for name in HELD}
    columns["stop"] = attributes.get("stop", attributes.get(END, columns["stop"]))
    for number, (text_name, note_name) in enumerate(KINDS.values()):
        places = np.flatnonzero((kind == number) & (role != _CLOSE))
        ends = less[places + 1]
        starts = np.where(role[places] == _EMPTY, ends, greater[places] + 1)
        text = _unescaped(_cut(content, starts, ends, starts == ends))
        given = notes.take(pa.array(note[places]))
        if text_name in ("categories", "episode_numbers"):
            offsets = pa.array(np.searchsorted(row[places], np.arange(count + 1)), pa.int32())
            text, given = (pa.ListArray.from_arrays(offsets, values) for values in (text, given))
        else:
            if (np.diff(row[places]) <= 0).any():
                return None  # two of what the columns hold one of
            if len(places) < count:
                place = np.full(count, -1)
                place[row[places]] = np.arange(len(places))
                taken = pa.array(place, mask=place < 0)
                text, given = text.take(taken), given.take(taken)
        columns[text_name], columns[note_name] = text, given
    columns.pop("")
    names = [f"@{name}" for name in attributes if name not in HELD]
    further = zip(*(attributes[name[1:]].to_pylist() for name in names))
    columns["attributes"] = pa.array([dumps(dict(zip(names, values))) for values in further], pa.string())
    return RawColumns(**columns if names else columns | {"attributes": pa.nulls(count, pa.string())})


def _programme_attributes(
    content: bytes, codes: np.ndarray, less: np.ndarray, greater: np.ndarray
) -> dict[str, pa.StringArray] | None:
    """Attributes of the programmes' start tags by name, if all have the same names in the same order."""
    quotes = np.flatnonzero(codes == _QUOTE)
    begin, end = np.searchsorted(quotes, less), np.searchsorted(quotes, greater)
    if not len(less) or (end - begin != (size := end[0] - begin[0])).any() or size == 0 or size % 2:
        return None
    values = quotes[begin[:, None] + np.arange(size)]  # programmes, quotes
    found: dict[str, pa.StringArray] = {}
    gap = less
    for place in range(0, values.shape[1], 2):
        text = content[gap[0] : values[0, place]]
        match = (_GAP if place else _FIRST_GAP).fullmatch(text)
        if match is None or match[1].decode() in found or not _all_equal(codes, gap, values[:, place], text):
            return None
        found[match[1].decode()] = _unescaped(_cut(content, values[:, place] + 1, values[:, place + 1]))
        gap = values[:, place + 1] + 1
    text = content[gap[0] : greater[0]]
    return found if not text.strip() and _all_equal(codes, gap, greater, text) else None


def _all_equal(codes: np.ndarray, starts: np.ndarray, ends: np.ndarray, text: bytes) -> bool:
    if (ends - starts != len(text)).any():
        return False
    return bool((codes[starts[:, None] + np.arange(len(text))] == np.frombuffer(text, np.uint8)).all())


def _blank_between(content: bytes, less: np.ndarray, greater: np.ndarray, opens: np.ndarray) -> bool:
    """Whether there is only white space before the first tag, after the last, and outside of elements."""
    starts, ends = greater[:-1] + 1, less[1:]
    between = (ends > starts) & ~opens[:-1]
    outside = _cut(content, starts[between], ends[between]).unique().to_pylist()
    around = content[: less[0]] + content[greater[-1] + 1 :]
    return not "".join(outside).strip(" \t\n") and not around.strip()


def _cut(content: bytes, starts: np.ndarray, ends: np.ndarray, absent: Any = None) -> pa.StringArray:
    """Spans of valid UTF-8, rising and apart from each other, as text; null where ``absent``."""
    bounds = np.column_stack([starts, ends]).astype(np.int32).ravel()
    if not len(starts):
        return pa.array([], pa.string())
    pieces = pa.StringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(content))
    return pieces.take(pa.array(np.arange(0, len(bounds), 2), mask=absent))


def _unescaped(column: pa.StringArray) -> pa.StringArray:
    """References resolved as a parser does; text.py leaves only XML's own five and valid numbers."""
    if not len(column) or b"&" not in column.buffers()[2].to_pybytes():
        return column
    mask = pc.fill_null(pc.match_substring(column, "&"), False)  # pyright: ignore[reportAttributeAccessIssue]  (made at import)
    resolved = pa.array(
        [_REFERENCE.sub(_character, text) for text in column.filter(mask).to_pylist()], pa.string()
    )
    return pc.replace_with_mask(column, mask, resolved)  # pyright: ignore[reportAttributeAccessIssue]


def _character(reference: re.Match[str]) -> str:
    name = reference[1]
    return _FIVE.get(name) or chr(int(name[2:], 16) if name[1] in "xX" else int(name[1:]))


@lru_cache(maxsize=4096)
def _read_tag(text: str) -> _Tag | None:
    match = _TAG.fullmatch(text)
    if match is None or (match[1] and (match[3] or match[6])):
        return None
    pairs = _PAIR.findall(match[3])
    attributes = dict(pairs)
    if len(attributes) < len(pairs):
        return None
    role = _CLOSE if match[1] else _EMPTY if match[6] else _OPEN
    note = attributes.get("system" if match[2] == "episode-num" else "lang")
    return _Tag(role, list(KINDS).index(match[2]), note)
