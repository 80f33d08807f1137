"""Columns of programmes: filled as written, cleaned and typed a column at a time, handed over as Arrow.

Cleaning and parsing are done once for each distinct value of a part: Arrow finds the distinct values in one sequential
pass, where a Python dictionary asked 800,000 times takes as long as the parsing itself (measured: 0.5 s of 1.1 s). What
is surely clean (most parts of most columns) is found so as a whole, and passed on as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage.catalogue.rows import DETAILS, ORIGINALS, PROGRAMMES
from tasks.ingest.common_times import parse_times
from tasks.ingest.details import Details
from tasks.ingest.extra import languages, together
from tasks.ingest.said import Said
from tasks.ingest.text import all_clean, clean

DAY = 24 * 3600 * 1_000_000  # microseconds
_Note = Callable[[np.ndarray, list[str]], None]


@dataclass(frozen=True)
class Part:
    """Some programmes as Arrow.

    Attributes:
        programmes: Those that have a place in a schedule.
        details: What else they say.
        originals: Their text where cleaning changed it.
        reasons: Row among all of the part to why it has no place.
    """

    programmes: pa.RecordBatch
    details: pa.RecordBatch
    originals: pa.RecordBatch
    reasons: dict[int, str]


class ProgrammeColumns:
    """One list a column, one entry a programme, as the feed has it; lists of lists as values and offsets.

    Args:
        zone: Of times that name none.
    """

    def __init__(self, zone: str = "") -> None:
        self.details = Details(zone)
        self.channel: list[str | None] = []
        self.start: list[str | None] = []
        self.stop: list[str | None] = []
        self.title: list[str | None] = []
        self.title_language: list[str | None] = []
        self.sub_title: list[str | None] = []
        self.sub_title_language: list[str | None] = []
        self.date: list[str | None] = []
        self.categories: list[str | None] = []
        self.category_languages: list[str | None] = []
        self.category_offsets: list[int] = []
        self.episode_numbers: list[str | None] = []
        self.episode_systems: list[str | None] = []
        self.episode_offsets: list[int] = []
        self.attributes: list[str | None] = []

    def __len__(self) -> int:
        return len(self.channel)

    def said(self) -> Said:
        """The same as Arrow, but for the details."""
        starts = ("category_offsets", "episode_offsets")
        offsets = {name: np.array(getattr(self, name), np.int64) for name in starts}
        from_details = ("description", "description_language")
        texts = [field.name for field in fields(Said) if field.name not in (*offsets, *from_details)]
        spoken = self.details.description_language
        return Said(
            **{name: pa.array(getattr(self, name), pa.string()) for name in texts},
            **offsets,
            description=None,
            description_language=pa.array(map(spoken.get, range(len(self))), pa.string(), size=len(self)),
        )


def settle(said: Said, zone: str = "", details: Details | None = None) -> Part:
    """The rows that have a place in a schedule, and for each other row the reason why not.

    Args:
        zone: Of times that name none.
        details: What else the programmes say; None where a description is all there may be.
    """
    originals = _Originals()
    channel, title = _named(said.channel), _cleaned(said.title, originals.column("title"))
    times = _times(pa.concat_arrays([said.start, said.stop]), zone)  # together: one programme's stop is the next one's start
    start, stop = times[: len(said)], times[len(said) :]
    noted = originals.column("category", said.category_offsets)
    categories, kept_categories = _lists(said.categories, said.category_offsets, noted)
    episode_numbers, kept_numbers = _lists(said.episode_numbers, said.episode_offsets)
    systems = _cleaned(said.episode_systems)
    sub_title = _cleaned(said.sub_title, originals.column("sub_title"))
    noted = originals.column("description")
    descriptions = None if said.description is None else _cleaned(said.description, noted)
    spoken = _where(sub_title, said.sub_title_language), _where(descriptions, said.description_language)
    extra = languages(_beside(categories, kept_categories, said.category_languages), *spoken)
    batch = pa.RecordBatch.from_arrays(
        [
            channel,
            start.cast(pa.timestamp("us")),
            stop.cast(pa.timestamp("us")),
            _stop_notes(start, stop, said.stop),
            title,
            _cleaned(said.title_language),
            sub_title,
            categories,
            episode_numbers,
            _beside(episode_numbers, kept_numbers, systems),
            _cleaned(said.date),
            together(extra, said.attributes, details.elements if details is not None else {}),
        ],
        schema=PROGRAMMES,
    )
    no_channel, no_title, bad_start = (np.asarray(column.is_null()) for column in (channel, title, start))
    bad = no_channel | no_title | bad_start
    kept = ~bad if bad.any() else None
    more = details.batch(kept) if details is not None else _described(descriptions if descriptions is not None else pa.nulls(len(said), pa.string()), kept)
    told = originals.batch(details.originals if details is not None else [], kept)
    if kept is None:
        return Part(batch, more, told, {})
    reasons = {int(row): "no_channel" if no_channel[row] else "no_title" if no_title[row] else "bad_start" for row in np.flatnonzero(bad)}
    return Part(batch.filter(pa.array(kept)), more, told, reasons)


def _described(descriptions: pa.Array, kept: np.ndarray | None) -> pa.RecordBatch:
    """Details of programmes that have a description and nothing else."""
    if kept is not None:
        descriptions = descriptions.filter(pa.array(kept))
    rows = np.flatnonzero(np.asarray(descriptions.is_valid()))
    given = {"row": pa.array(rows), "description": descriptions.drop_null()}
    return pa.RecordBatch.from_arrays([given[field.name] if field.name in given else pa.nulls(len(rows), field.type) for field in DETAILS], schema=DETAILS)


def _stop_notes(start: pa.Array, stop: pa.Array, given: pa.StringArray) -> pa.Array:
    """missing, unreadable, not_after_start, over_a_day, or null."""
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


class _Originals:
    """Text that cleaning changed, as it was, with the row and element it stood in."""

    def __init__(self) -> None:
        self.found: list[tuple[int, str, str]] = []

    def column(self, element: str, offsets: np.ndarray | None = None) -> _Note:
        """Takes what was changed in a column; ``offsets`` where a row holds several values."""

        def note(places: np.ndarray, texts: list[str]) -> None:
            rows = places if offsets is None else np.searchsorted(offsets, places, side="right") - 1
            self.found.extend((int(row), element, text) for row, text in zip(rows, texts))

        return note

    def batch(self, further: list[tuple[int, str, str]], kept: np.ndarray | None) -> pa.RecordBatch:
        """As Arrow, without the rows that are not ``kept``, the gaps closed."""
        place = None if kept is None else np.cumsum(kept) - 1
        rows = [(row if place is None else int(place[row]), element, text) for row, element, text in (*self.found, *further) if kept is None or kept[row]]
        return to_batch(rows, ORIGINALS)


def to_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of plain tuples as Arrow."""
    columns = list(zip(*rows)) if rows else [()] * len(schema)
    return pa.RecordBatch.from_arrays([pa.array(column, form) for column, form in zip(columns, schema.types)], schema=schema)


def _cleaned(column: pa.StringArray, changed: _Note | None = None) -> pa.Array:
    """Clean text; null where nothing is left. Of what cleaning changed, ``changed`` is told places and text."""
    if all_clean(column):
        return column
    encoded = column.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    clean_texts = [clean(text) or None for text in texts]
    if changed is not None:
        pairs = enumerate(zip(texts, clean_texts))
        mended = [code for code, (text, now) in pairs if now is not text and (now or "") != text.strip()]
        if mended:
            codes = encoded.indices.fill_null(-1).to_numpy()
            places = np.flatnonzero(np.isin(codes, mended))
            changed(places, [texts[code] for code in codes[places]])
    return pa.array(clean_texts, pa.string()).take(encoded.indices)


def _beside(lists: pa.ListArray, kept: pa.Array | None, values: pa.Array) -> pa.ListArray:
    """Lists of what stands beside the values of other lists."""
    return pa.ListArray.from_arrays(lists.offsets, values if kept is None else values.filter(kept))


def _where(texts: pa.Array | None, values: pa.Array) -> pa.Array:
    """Values of the rows that have a text; all where there is no column of texts."""
    if texts is None or not texts.null_count or values.null_count == len(values):
        return values
    return pc.if_else(texts.is_valid(), values, None)  # pyright: ignore[reportAttributeAccessIssue]


def _named(ids: pa.StringArray) -> pa.Array:
    """Ids byte for byte, so that a channel and its programmes match; null where there is only white space."""
    encoded = ids.dictionary_encode()
    names = [name if name.strip() else None for name in encoded.dictionary.to_pylist()]
    return pa.array(names, pa.string()).take(encoded.indices) if None in names else ids


def _times(texts: pa.StringArray, zone: str) -> pa.Array:
    """Microseconds since 1970 UTC (int64); null where it is no time."""
    encoded = texts.dictionary_encode()
    return parse_times(encoded.dictionary, zone).take(encoded.indices)


def _lists(values: pa.StringArray, offsets: np.ndarray, changed: _Note | None = None) -> tuple[pa.ListArray, pa.Array | None]:
    """A list column of clean text, and which values it holds (None: all): what was nothing but white space is left out."""
    clean_values = _cleaned(values, changed)
    bounds = np.array([*offsets, len(values)], dtype=np.int32)
    kept = None
    if clean_values.null_count:
        kept = clean_values.is_valid()
        bounds = np.concatenate([[0], np.cumsum(np.asarray(kept))])[bounds].astype(np.int32)
        clean_values = clean_values.drop_null()
    return pa.ListArray.from_arrays(pa.array(bounds), clean_values), kept
