"""What programmes say as a feed has it, and from that the catalogue's columns, cleaned and typed.

Cleaning and parsing are done once for each distinct value, found by Arrow in one sequential pass (a Python
dictionary asked 800,000 times takes as long as the parsing itself). Columns that are clean as a whole, most
of them, are passed on unchanged.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage.catalogue.rows import DETAILS, ORIGINALS, PROGRAMMES
from tasks.ingest.batches import to_batch
from tasks.ingest.encoding import show_invalid
from tasks.ingest.extra import languages, together
from tasks.text.clean import clean

DAY = 24 * 3600 * 1_000_000  # microseconds
LISTS = ("categories", "category_languages", "episode_numbers", "episode_systems")
_Note = Callable[[np.ndarray, list[str]], None]


@dataclass(frozen=True, kw_only=True)
class RawColumns:
    """One row a programme in every column, neither cleaned nor typed.

    Attributes:
        attributes: JSON of a programme's attributes that have no column.
        details: Row to values of columns of DETAILS but the description, clean and typed.
        elements: Row to elements that no column holds (extra.py).
    """

    channel: pa.StringArray
    start: pa.StringArray
    stop: pa.StringArray
    title: pa.StringArray
    title_language: pa.StringArray
    sub_title: pa.StringArray
    sub_title_language: pa.StringArray
    date: pa.StringArray
    description: pa.StringArray
    description_language: pa.StringArray
    categories: pa.ListArray
    category_languages: pa.ListArray
    episode_numbers: pa.ListArray
    episode_systems: pa.ListArray
    attributes: pa.StringArray
    details: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    elements: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> "RawColumns":
        """Rows whose keys are the names of columns; a missing one is null or empty."""
        columns: dict[str, Any] = {}
        for name in (column.name for column in fields(cls)):
            if name in ("details", "elements"):
                columns[name] = {place: row[name] for place, row in enumerate(rows) if row.get(name)}
            elif name in LISTS:
                columns[name] = pa.array([row.get(name, ()) for row in rows], pa.list_(pa.string()))
            else:
                columns[name] = pa.array([row.get(name) for row in rows], pa.string())
        return cls(**columns)


@dataclass(frozen=True)
class ColumnChunk:
    """Valid programmes with details and originals; ``reasons``: row among all to reason for the others."""

    programmes: pa.RecordBatch
    details: pa.RecordBatch
    originals: pa.RecordBatch
    reasons: dict[int, str]


def validate_and_type(raw: RawColumns, parse_times: Callable[[pa.StringArray], pa.Array]) -> ColumnChunk:
    """The rows that have a place in a schedule, and for each other row the reason why not.

    Args:
        parse_times: Microseconds since 1970 UTC (int64) of texts; null where one is no time.
    """
    found: list[tuple[int, str, str]] = []  # row, element and text that cleaning changed

    def note(element: str, offsets: pa.Array | None = None) -> _Note:
        def add(places: np.ndarray, texts: list[str]) -> None:
            if offsets is not None:
                places = np.searchsorted(np.asarray(offsets), places, side="right") - 1
            found.extend((int(row), element, show_invalid(text)) for row, text in zip(places, texts))

        return add

    channel, title = _named(raw.channel), _cleaned(raw.title, note("title"))
    # together: one programme's stop is the next one's start
    times = parse_times(pa.concat_arrays([raw.start, raw.stop]))
    start, stop = times[: len(raw.start)], times[len(raw.start) :]
    categories, kept_categories = _lists(raw.categories, note("category", raw.categories.offsets))
    numbers, kept_numbers = _lists(raw.episode_numbers)
    sub_title = _cleaned(raw.sub_title, note("sub_title"))
    description = _cleaned(raw.description, note("description"))
    systems = _beside(numbers, kept_numbers, _cleaned(raw.episode_systems.values, read=_system))
    spoken = (sub_title, raw.sub_title_language), (description, raw.description_language)
    category_languages = _beside(categories, kept_categories, raw.category_languages.values)
    extra = languages(category_languages, *(_where(*each) for each in spoken))
    instants = start.cast(pa.timestamp("us")), stop.cast(pa.timestamp("us"))
    columns = [channel, *instants, _stop_notes(start, stop, raw.stop), title, _cleaned(raw.title_language)]
    columns += [sub_title, categories, numbers, systems, _cleaned(raw.date)]
    columns.append(together(extra, raw.attributes, raw.elements))
    programmes = pa.RecordBatch.from_arrays(columns, schema=PROGRAMMES)
    invalid = {"no_channel": channel, "no_title": title, "bad_start": start}
    bad = {reason: np.asarray(column.is_null()) for reason, column in invalid.items()}
    kept = ~np.logical_or.reduce(list(bad.values()))
    place = np.cumsum(kept) - 1
    details = _details(description, raw.details, kept, place)
    originals = to_batch([(int(place[row]), *of) for row, *of in found if kept[row]], ORIGINALS)
    reasons = {int(row): next(reason for reason in bad if bad[reason][row]) for row in np.flatnonzero(~kept)}
    programmes = programmes.filter(pa.array(kept)) if reasons else programmes
    return ColumnChunk(programmes, details, originals, reasons)


def _details(
    descriptions: pa.Array, more: Mapping[int, Mapping[str, Any]], kept: np.ndarray, place: np.ndarray
) -> pa.RecordBatch:
    """What kept programmes say beyond a schedule; programmes that say nothing have no row."""
    says = np.asarray(descriptions.is_valid())
    says[list(more)] = True
    rows = np.flatnonzero(says & kept)
    columns = {"row": pa.array(place[rows]), "description": descriptions.take(pa.array(rows))}
    values = [more.get(int(row), {}) for row in rows] if more else []
    for name, form in zip(DETAILS.names, DETAILS.types):
        if name not in columns:
            given = pa.array([each.get(name) for each in values], form)
            columns[name] = given if more else pa.nulls(len(rows), form)
    return pa.RecordBatch.from_pydict(columns, schema=DETAILS)


def _stop_notes(start: pa.Array, stop: pa.Array, given: pa.StringArray) -> pa.Array:
    length = np.asarray(stop.fill_null(0)) - np.asarray(start.fill_null(0))
    absent = np.asarray(stop.is_null())
    if not absent.any() and length.min(initial=1) > 0 and length.max(initial=0) <= DAY:
        return pa.nulls(len(start), pa.string())
    notes = np.full(len(start), None, dtype=object)
    notes[length <= 0] = "not_after_start"
    notes[length > DAY] = "over_a_day"
    for row in np.flatnonzero(absent):
        notes[row] = "unreadable" if given[row].as_py() else "missing"
    return pa.array(notes, pa.string())


def _system(text: str) -> str:
    """The name of an episode-num system; guides write it in any case (XMLTV_NS)."""
    return clean(text).lower()


def _cleaned(
    column: pa.StringArray, note: _Note | None = None, read: Callable[[str], str] = clean
) -> pa.Array:
    """Clean text, null where nothing is left; ``note`` receives places and text of what cleaning changed."""
    encoded = column.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    clean_texts = [read(text) or None for text in texts]
    if note is not None:
        pairs = enumerate(zip(texts, clean_texts))
        mended = [code for code, (text, now) in pairs if now is not text and (now or "") != text.strip()]
        if mended:
            codes = encoded.indices.fill_null(-1).to_numpy()
            places = np.flatnonzero(np.isin(codes, mended))
            note(places, [texts[code] for code in codes[places]])
    return pa.array(clean_texts, pa.string()).take(encoded.indices)


def _beside(lists: pa.ListArray, kept: pa.Array | None, values: pa.Array) -> pa.ListArray:
    """Lists of what stands beside the values of other lists."""
    return pa.ListArray.from_arrays(lists.offsets, values if kept is None else values.filter(kept))


def _where(texts: pa.Array, values: pa.Array) -> pa.Array:
    if not texts.null_count or values.null_count == len(values):
        return values
    return pc.if_else(texts.is_valid(), values, None)  # pyright: ignore[reportAttributeAccessIssue]


def _named(ids: pa.StringArray) -> pa.Array:
    """Ids byte for byte, so that a channel and its programmes match; null where there is only white space."""
    encoded = ids.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    names = [show_invalid(text) if text.strip() else None for text in texts]
    return ids if names == texts else pa.array(names, pa.string()).take(encoded.indices)


def _lists(lists: pa.ListArray, note: _Note | None = None) -> tuple[pa.ListArray, pa.Array | None]:
    """Lists of clean text without blank values, and which values are left (None: all)."""
    values = _cleaned(lists.values, note)
    if not values.null_count:
        return pa.ListArray.from_arrays(lists.offsets, values), None
    kept = values.is_valid()
    bounds = np.concatenate([[0], np.cumsum(np.asarray(kept))])[np.asarray(lists.offsets)]
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), values.drop_null()), kept
