"""Converts columns of programmes from raw text to the cleaned and typed columns of the catalogue.

Each distinct value is cleaned and parsed once. Arrow determines the distinct values (``dictionary_encode``).
A Python dictionary would be slow: 800,000 look-ups take as long as parsing the XML.
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
from tasks.ingest.extra import language_objects, merge_objects
from tasks.text.clean import clean

DAY = 24 * 3600 * 1_000_000  # microseconds
LIST_COLUMNS = ("categories", "category_languages", "episode_numbers", "episode_systems")
_ChangeRecorder = Callable[[np.ndarray, list[str]], None]  # receives row indices and texts before cleaning


@dataclass(frozen=True, kw_only=True)
class RawColumns:
    """Columns of programmes as text before cleaning. Each row is a programme.

    Attributes:
        attributes: JSON object with the XMLTV attributes of the programme that have no column.
        details: Row number -> values of DETAILS by column, without the description; already clean and typed.
        elements: Row number -> XMLTV elements that have no column (see extra.py).
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
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> "RawColumns":
        """Converts dictionaries, one per programme, to columns. Missing keys become null or an empty list."""
        columns: dict[str, Any] = {}
        for name in (column.name for column in fields(cls)):
            if name in ("details", "elements"):
                columns[name] = {number: row[name] for number, row in enumerate(rows) if row.get(name)}
            elif name in LIST_COLUMNS:
                columns[name] = pa.array([row.get(name, ()) for row in rows], pa.list_(pa.string()))
            else:
                columns[name] = pa.array([row.get(name) for row in rows], pa.string())
        return cls(**columns)


@dataclass(frozen=True)
class ColumnChunk:
    """Cleaned columns of the valid programmes in a part of a feed (schemas: storage/catalogue/rows.py)."""

    programmes: pa.RecordBatch
    details: pa.RecordBatch  # descriptions, people, ratings and other facts of programmes
    originals: pa.RecordBatch  # texts before cleaning, if cleaning has changed them
    reasons: dict[int, str]  # row number in RawColumns -> why the programme is invalid


def clean_columns(raw: RawColumns, parse_time: Callable[[str], int | None]) -> ColumnChunk:
    """Cleans the programmes that have a channel, a title and a start, and rejects all others with a reason.

    Args:
        raw: Columns of a part of the feed.
        parse_time: Function that converts a text to microseconds since 1970 (UTC), or to None if it is
            invalid.
    """
    changed_texts: list[tuple[int, str, str]] = []  # row, element, and text before cleaning

    def recorder(element: str, offsets: pa.Array | None = None) -> _ChangeRecorder:
        """Returns a function that appends texts of an element to ``changed_texts``.

        ``offsets`` are the offsets of a list column; None if the column has one text per row.
        """

        def add(rows: np.ndarray, texts: list[str]) -> None:
            if offsets is not None:
                rows = np.searchsorted(np.asarray(offsets), rows, side="right") - 1
            changed_texts.extend((int(row), element, show_invalid(text)) for row, text in zip(rows, texts))

        return add

    channel, title = _clean_ids(raw.channel), _clean_texts(raw.title, recorder("title"))
    start, stop = _parse_times(raw, parse_time)
    categories, is_category = _clean_lists(raw.categories, recorder("category", raw.categories.offsets))
    episode_numbers, is_number = _clean_lists(raw.episode_numbers)
    sub_title = _clean_texts(raw.sub_title, recorder("sub_title"))
    description = _clean_texts(raw.description, recorder("description"))
    systems = _clean_texts(raw.episode_systems.values, clean_text=_clean_system)
    language_json = language_objects(
        _with_offsets(categories, is_category, raw.category_languages.values),
        _drop_languages_without_text(raw.sub_title_language, sub_title),
        _drop_languages_without_text(raw.description_language, description),
    )
    columns = [
        channel,
        start.cast(pa.timestamp("us")),
        stop.cast(pa.timestamp("us")),
        _find_stop_problems(start, stop, raw.stop),
        title,
        _clean_texts(raw.title_language),
        sub_title,
        categories,
        episode_numbers,
        _with_offsets(episode_numbers, is_number, systems),
        _clean_texts(raw.date),
        merge_objects(language_json, raw.attributes, raw.elements),
    ]
    programmes = pa.RecordBatch.from_arrays(columns, schema=PROGRAMMES)
    required_columns = {"no_channel": channel, "no_title": title, "bad_start": start}
    is_invalid = {reason: np.asarray(column.is_null()) for reason, column in required_columns.items()}
    is_valid = ~np.logical_or.reduce(list(is_invalid.values()))
    new_rows = np.cumsum(is_valid) - 1
    details = _make_details(description, raw.details, is_valid, new_rows)
    originals = [(int(new_rows[row]), *values) for row, *values in changed_texts if is_valid[row]]
    invalid_rows = np.flatnonzero(~is_valid).tolist()
    reasons = {row: next(name for name, rows in is_invalid.items() if rows[row]) for row in invalid_rows}
    programmes = programmes.filter(pa.array(is_valid)) if reasons else programmes
    return ColumnChunk(programmes, details, to_batch(originals, ORIGINALS), reasons)


def _parse_times(raw: RawColumns, parse_time: Callable[[str], int | None]) -> tuple[pa.Array, pa.Array]:
    """Returns starts and stops in microseconds since 1970 (UTC); null for invalid texts."""
    # starts and stops are parsed together, because the stop of a programme is usually the start of the next
    texts = pa.concat_arrays([raw.start, raw.stop]).dictionary_encode()
    distinct_times = [parse_time(text) for text in texts.dictionary.to_pylist()]
    times = pa.array(distinct_times, pa.int64()).take(texts.indices)
    return times[: len(raw.start)], times[len(raw.start) :]


def _make_details(
    descriptions: pa.Array,
    details: Mapping[int, Mapping[str, Any]],
    is_valid: np.ndarray,
    new_rows: np.ndarray,
) -> pa.RecordBatch:
    """Creates the batch DETAILS, which has a row for each valid programme that has details.

    ``new_rows`` are the indices of the programmes among the valid programmes.
    """
    has_details = np.asarray(descriptions.is_valid())
    has_details[list(details)] = True
    rows = np.flatnonzero(has_details & is_valid)
    columns = {"row": pa.array(new_rows[rows]), "description": descriptions.take(pa.array(rows))}
    details_by_row = [details.get(int(row), {}) for row in rows] if details else []
    for name, type_ in zip(DETAILS.names, DETAILS.types):
        if name not in columns:
            column = pa.array([row_details.get(name) for row_details in details_by_row], type_)
            columns[name] = column if details else pa.nulls(len(rows), type_)
    return pa.RecordBatch.from_pydict(columns, schema=DETAILS)


def _find_stop_problems(start: pa.Array, stop: pa.Array, texts: pa.StringArray) -> pa.Array:
    """Returns why the stop of each programme is implausible: a ``stop_note`` (xmltv/reader.py), or null.

    ``texts`` are the stops before they were converted to microseconds.
    """
    length = np.asarray(stop.fill_null(0)) - np.asarray(start.fill_null(0))
    is_missing = np.asarray(stop.is_null())
    if not is_missing.any() and length.min(initial=1) > 0 and length.max(initial=0) <= DAY:
        return pa.nulls(len(start), pa.string())
    notes = np.full(len(start), None, dtype=object)
    notes[length <= 0] = "not_after_start"
    notes[length > DAY] = "over_a_day"
    for row in np.flatnonzero(is_missing):
        notes[row] = "unreadable" if texts[row].as_py() else "missing"
    return pa.array(notes, pa.string())


def _clean_system(text: str) -> str:
    """Cleans and lower-cases the attribute ``system`` of an ``episode-num`` element."""
    return clean(text).lower()


def _clean_texts(
    column: pa.StringArray, record: _ChangeRecorder | None = None, clean_text: Callable[[str], str] = clean
) -> pa.Array:
    """Applies ``clean_text`` to each distinct text. Empty texts become null.

    Calls ``record`` with the row indices of the texts that cleaning changes, and these texts before cleaning.
    """
    encoded_column = column.dictionary_encode()
    texts = encoded_column.dictionary.to_pylist()
    clean_texts = [clean_text(text) or None for text in texts]
    if record is not None:
        pairs = enumerate(zip(texts, clean_texts))
        changed_codes = [
            code for code, (text, cleaned) in pairs if cleaned is not text and (cleaned or "") != text.strip()
        ]
        if changed_codes:
            codes = encoded_column.indices.fill_null(-1).to_numpy()
            rows = np.flatnonzero(np.isin(codes, changed_codes))
            record(rows, [texts[code] for code in codes[rows]])
    return pa.array(clean_texts, pa.string()).take(encoded_column.indices)


def _with_offsets(lists: pa.ListArray, mask: pa.Array | None, values: pa.Array) -> pa.ListArray:
    """Returns lists with the offsets of ``lists`` and the elements of ``values`` that ``mask`` selects.

    If ``mask`` is None, all elements are selected.
    """
    return pa.ListArray.from_arrays(lists.offsets, values if mask is None else values.filter(mask))


def _drop_languages_without_text(languages: pa.Array, texts: pa.Array) -> pa.Array:
    """Replaces the language of a text by null if the text is null."""
    if not texts.null_count or languages.null_count == len(languages):
        return languages
    return pc.if_else(texts.is_valid(), languages, None)  # pyright: ignore[reportAttributeAccessIssue]


def _clean_ids(ids: pa.StringArray) -> pa.Array:
    """Replaces blank channel ids by null. Other ids are not cleaned, so that they remain distinct."""
    encoded_ids = ids.dictionary_encode()
    texts = encoded_ids.dictionary.to_pylist()
    names = [show_invalid(text) if text.strip() else None for text in texts]
    return ids if names == texts else pa.array(names, pa.string()).take(encoded_ids.indices)


def _clean_lists(
    lists: pa.ListArray, record: _ChangeRecorder | None = None
) -> tuple[pa.ListArray, pa.Array | None]:
    """Cleans the texts in lists and removes blank texts.

    Returns:
        The cleaned lists, and a mask of the texts that were not removed; the mask is None if no text was
        removed.
    """
    values = _clean_texts(lists.values, record)
    if not values.null_count:
        return pa.ListArray.from_arrays(lists.offsets, values), None
    is_valid = values.is_valid()
    offsets = np.concatenate([[0], np.cumsum(np.asarray(is_valid))])[np.asarray(lists.offsets)]
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.drop_null()), is_valid
