"""The common form of a frame, read without a parser: flat programmes, where every tag is one of a few and nothing nests deeper.

Tags and text are found as positions of ``<`` and ``>`` in the bytes, columns are cut out of them by Arrow, and no string
becomes a Python object: three times as fast as building elements (measured: 0.3 s against 0.9 s for 130,000 programmes).
What it takes is what a strict XML parser would take, checked as positions and distinct tags; whatever is in doubt (CDATA, a ``>``
in a text, single quotes, two titles, a tag of another name) is left to the parser, so that nothing depends on which of
the two has read a frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.ingest.extra import dumps
from tasks.ingest.said import Said

HELD = ("channel", "start", "stop")  # attributes of a programme that have columns
KINDS = ("title", "sub-title", "desc", "date", "category", "episode-num")
_ATTRIBUTE = r'\s+([A-Za-z][\w.-]*)="([^"&]*)"'
_TAG = re.compile(rf"(/?)({'|'.join(KINDS)})((?:{_ATTRIBUTE})*)\s*(/?)", re.ASCII)
_PAIR = re.compile(_ATTRIBUTE, re.ASCII)
_FIRST_GAP = re.compile(rb"<programme\s+([A-Za-z][\w.-]*)=")
_GAP = re.compile(rb"\s+([A-Za-z][\w.-]*)=")
_OTHER = re.compile(rb"<(?!(?:/|(?:programme|%s)[\s>/]))[^\s>/]+[\s>/]" % "|".join(KINDS).encode())
_LOOK = 4096  # bytes in which a guide that says more than this file knows nearly always shows it
_LESS, _GREATER, _QUOTE, _SPACE, _SLASH, _P = b'<>" /p'
_BEGIN, _END, _OPEN, _CLOSE, _EMPTY = range(5)  # roles of a tag: of a programme, of an element in it


@dataclass(frozen=True)
class _Tag:
    role: int
    kind: int
    said: str | None  # the language, or the system of an episode number


def scan(content: bytes) -> Said | None:
    """The programmes of a repaired frame (elements.py), or None where it is not of the common form."""
    if _OTHER.search(content, 0, _LOOK) or b"\xef\xbf" in content:  # U+FFFE and U+FFFF are not XML's
        return None
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    codes = np.frombuffer(content, np.uint8)
    less, greater = np.flatnonzero(codes == _LESS), np.flatnonzero(codes == _GREATER)
    if not len(less) or len(less) != len(greater) or (less >= greater).any() or (greater[:-1] >= less[1:]).any():
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
    role, kind, tag = np.where(begins, _BEGIN, _END), np.full(len(less), -1), np.full(len(less), -1)
    tag[others] = encoded.indices.to_numpy()
    role[others] = np.array([form.role for form in forms if form], np.int64)[tag[others]]
    kind[others] = np.array([form.kind for form in forms if form], np.int64)[tag[others]]
    opens = role == _OPEN
    flat = role[0] == _BEGIN and role[-1] == _END and (opens[:-1] == (role[1:] == _CLOSE)).all() and (kind[:-1] == kind[1:])[opens[:-1]].all()
    if not flat or ((role[:-1] == _END) != (role[1:] == _BEGIN)).any() or not _blank_between(content, less, greater, opens):
        return None
    return _columns(content, _Tags(less, greater, role, kind, tag, [form.said for form in forms if form]), attributes)


@dataclass(frozen=True)
class _Tags:
    """All tags of a frame: where, what, and which of the distinct ones."""

    less: np.ndarray
    greater: np.ndarray
    role: np.ndarray
    kind: np.ndarray
    tag: np.ndarray
    said: list[str | None]


def _columns(content: bytes, tags: _Tags, attributes: dict[str, pa.StringArray]) -> Said | None:
    """Text and attributes as columns; None where a programme has two of what the columns hold one of."""
    row = np.cumsum(tags.role == _BEGIN) - 1
    count = int(row[-1]) + 1
    said = pa.array(tags.said, pa.string())
    texts: dict[str, pa.StringArray] = {}
    notes: dict[str, pa.StringArray] = {}
    offsets: dict[str, np.ndarray] = {}
    for number, name in enumerate(KINDS):
        places = np.flatnonzero((tags.kind == number) & (tags.role != _CLOSE))
        rows = row[places]
        ends = tags.less[places + 1]
        starts = np.where(tags.role[places] == _EMPTY, ends, tags.greater[places] + 1)
        text, note = _unescaped(_cut(content, starts, ends, starts == ends)), said.take(pa.array(tags.tag[places]))
        if name in ("category", "episode-num"):
            offsets[name] = np.searchsorted(rows, np.arange(count))
        else:
            if (np.diff(rows) <= 0).any():
                return None
            if len(rows) < count:
                place = np.full(count, -1)
                place[rows] = np.arange(len(rows))
                taken = pa.array(place, mask=place < 0)
                text, note = text.take(taken), note.take(taken)
        texts[name], notes[name] = text, note
    nothing = pa.nulls(count, pa.string())
    return Said(
        channel=attributes.get("channel", nothing),
        start=attributes.get("start", nothing),
        stop=attributes.get("stop", nothing),
        title=texts["title"],
        title_language=notes["title"],
        sub_title=texts["sub-title"],
        sub_title_language=notes["sub-title"],
        date=texts["date"],
        description=texts["desc"],
        description_language=notes["desc"],
        categories=texts["category"],
        category_languages=notes["category"],
        category_offsets=offsets["category"],
        episode_numbers=texts["episode-num"],
        episode_systems=notes["episode-num"],
        episode_offsets=offsets["episode-num"],
        attributes=_further(attributes, nothing),
    )


def _further(attributes: dict[str, pa.StringArray], nothing: pa.StringArray) -> pa.StringArray:
    """The attributes that have no column, a JSON object a programme."""
    names = [name for name in attributes if name not in HELD]
    rows = zip(*(attributes[name].to_pylist() for name in names))
    if not names:
        return nothing
    return pa.array([dumps({f"@{name}": value for name, value in zip(names, row)}) for row in rows])


def _programme_attributes(content: bytes, codes: np.ndarray, less: np.ndarray, greater: np.ndarray) -> dict[str, pa.StringArray] | None:
    """Attributes of the programmes' start tags by name, if all of them have the same names in the same order."""
    quotes = np.flatnonzero(codes == _QUOTE)
    begin, end = np.searchsorted(quotes, less), np.searchsorted(quotes, greater)
    if not len(less) or (end - begin != end[0] - begin[0]).any() or end[0] == begin[0] or (end[0] - begin[0]) % 2:
        return None
    values = quotes[begin[:, None] + np.arange(end[0] - begin[0])]  # programmes, quotes
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
    """Whether all these spans hold this text."""
    return bool((ends - starts == len(text)).all() and (codes[starts[:, None] + np.arange(len(text))] == np.frombuffer(text, np.uint8)).all())


def _blank_between(content: bytes, less: np.ndarray, greater: np.ndarray, opens: np.ndarray) -> bool:
    """Whether there is nothing but white space before the first tag, after the last, and wherever no element's text is."""
    starts, ends = greater[:-1] + 1, less[1:]
    between = (ends > starts) & ~opens[:-1]
    outside = _cut(content, starts[between], ends[between]).unique().to_pylist()
    return not "".join(outside).strip(" \t\n") and not content[: less[0]].strip() and not content[greater[-1] + 1 :].strip()


def _cut(content: bytes, starts: np.ndarray, ends: np.ndarray, absent: np.ndarray | None = None) -> pa.StringArray:
    """Spans of valid UTF-8, rising and apart from each other, as text; null where ``absent``."""
    bounds = np.empty(2 * len(starts), np.int32)
    bounds[0::2], bounds[1::2] = starts, ends
    if not len(starts):
        return pa.array([], pa.string())
    pieces = pa.StringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(content))
    return pieces.take(pa.array(np.arange(0, len(bounds), 2), mask=absent))


def _unescaped(column: pa.StringArray) -> pa.StringArray:
    """References to characters resolved, as a parser does; there are none but XML's own five and sound numbers."""
    if not len(column) or b"&" not in column.buffers()[2].to_pybytes():
        return column
    mask = pc.fill_null(pc.match_substring(column, "&"), False)  # pyright: ignore[reportAttributeAccessIssue]  (made at import)
    resolved = pa.array([_resolve(text) for text in column.filter(mask).to_pylist()], pa.string())
    return pc.replace_with_mask(column, mask, resolved)  # pyright: ignore[reportAttributeAccessIssue]


_REFERENCE = re.compile(r"&(#?\w+);")
_FIVE = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def _resolve(text: str) -> str:
    return _REFERENCE.sub(lambda match: _FIVE.get(match[1]) or chr(int(match[1][2:], 16) if match[1][1] in "xX" else int(match[1][1:])), text)


@lru_cache(maxsize=4096)
def _read_tag(text: str) -> _Tag | None:
    """What a tag is, written without its brackets; None if it is none of the common ones."""
    match = _TAG.fullmatch(text)
    if match is None or (match[1] and (match[3] or match[6])):
        return None
    pairs = _PAIR.findall(match[3])
    said = dict(pairs)
    if len(said) < len(pairs):
        return None
    role = _CLOSE if match[1] else _EMPTY if match[6] else _OPEN
    return _Tag(role, KINDS.index(match[2]), said.get("system" if match[2] == "episode-num" else "lang"))
