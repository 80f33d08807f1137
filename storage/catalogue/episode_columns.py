"""Parses season, episode and part of TV programmes from their episode numbers, titles and sub-titles.

Each distinct text is parsed once. The distinct parsed numbers (EpisodeNumber) are in a list, and the code of
a number is its index in this list. Arrays contain one code per programme. At the end, codes are replaced by
the values of the columns.
"""

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage.episodes.numbers import UNKNOWN_EPISODE, EpisodeNumber, complete_number, read_numbers, read_text

EPISODE_COLUMNS = EpisodeNumber._fields  # names of the columns of programmes that this module fills
EPISODE_MIGRATION = "episode_columns"  # name of the migration that adds these columns to the database
_UNIT_SEPARATOR, _RECORD_SEPARATOR = "\x1f", "\x1e"  # cleaned texts contain no control characters
_CHUNK_ROWS = 100_000  # programmes in memory at once


class EpisodeReader:
    """Parses the episode numbers of the programmes of a feed, batch by batch, and caches parsed texts."""

    def __init__(self) -> None:
        self._numbers = [UNKNOWN_EPISODE]  # the index of a number is its code
        self._code_by_number: dict[EpisodeNumber, int] = {UNKNOWN_EPISODE: 0}
        self._episode_elements = _CodeCache(lambda joined: self._code_of_number(read_numbers(_split(joined))))
        self._titles = _CodeCache(lambda text: self._code_of_number(read_text(text, True)))
        self._sub_titles = _CodeCache(lambda text: self._code_of_number(read_text(text, False)))
        self._completed_codes = _CodeCache(
            lambda codes: self._code_of_number(complete_number(*(self._numbers[code] for code in codes)))
        )

    def columns(self, rows: pa.RecordBatch | pa.Table) -> list[pa.Array]:
        """Returns the arrays of EPISODE_COLUMNS for a batch of programmes, all int32 (programmes,).

        Args:
            rows: Programmes with the columns title, sub_title, episode_numbers and episode_systems.
        """
        codes = self._episode_elements.encode(_join(rows["episode_systems"], rows["episode_numbers"]))
        has_episode = np.array([number.episode is not None for number in self._numbers])
        incomplete_rows = np.flatnonzero(~has_episode[codes])
        titles, sub_titles = (
            cache.encode(_texts_with_digits(rows[name].take(pa.array(incomplete_rows))))
            for name, cache in (("title", self._titles), ("sub_title", self._sub_titles))
        )
        changed_rows = np.flatnonzero(titles | sub_titles)
        code_triples = np.stack([codes[incomplete_rows], titles, sub_titles], axis=1)[changed_rows].tolist()
        codes[incomplete_rows[changed_rows]] = [
            self._completed_codes[tuple(triple)] for triple in code_triples
        ]
        indices = pa.array(codes)
        return [pa.array(values, pa.int32()).take(indices) for values in zip(*self._numbers, strict=True)]

    def _code_of_number(self, number: EpisodeNumber) -> int:
        """Returns the code of a parsed number; adds the number to the list if it is new."""
        if (code := self._code_by_number.setdefault(number, len(self._numbers))) == len(self._numbers):
            self._numbers.append(number)
        return code


class _CodeCache(dict):
    """Dictionary that maps texts to codes (integers), and computes missing codes by ``compute_code``."""

    def __init__(self, compute_code: Callable[[Any], int]) -> None:
        self._compute_code = compute_code

    def __missing__(self, key: Any) -> int:
        code = self[key] = self._compute_code(key)
        return code

    def encode(self, texts: pa.Array) -> np.ndarray:
        """Returns the code of each text: int64 (texts,). Looks up each distinct text once."""
        dictionary_array = texts.dictionary_encode()
        codes = np.array([self[text] for text in dictionary_array.dictionary.to_pylist()], dtype=np.int64)
        return codes[dictionary_array.indices.to_numpy()]


def _join(*columns: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Joins the strings in the lists of several columns to one text per row. Null becomes ''."""
    texts = []
    for column in map(_combine_chunks, columns):
        lists = pa.ListArray.from_arrays(column.offsets, column.values.fill_null(""))
        texts.append(pc.binary_join(lists, _UNIT_SEPARATOR))  # pyright: ignore[reportAttributeAccessIssue]
    return pc.binary_join_element_wise(*texts, _RECORD_SEPARATOR)  # pyright: ignore[reportAttributeAccessIssue]


def _split(joined_numbers: str) -> tuple[tuple[str, str], ...]:
    """Splits a text from ``_join`` into pairs (system, number), one per XMLTV element ``episode-num``."""
    systems, numbers = (text.split(_UNIT_SEPARATOR) for text in joined_numbers.split(_RECORD_SEPARATOR))
    return tuple(zip(systems, numbers, strict=True))


def _texts_with_digits(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Returns a copy of a text column in which '' replaces null and all texts without digits."""
    texts = _combine_chunks(column).fill_null("")
    return pc.if_else(pc.match_substring_regex(texts, r"\p{Nd}"), texts, "")  # pyright: ignore[reportAttributeAccessIssue]


def fill_episode_columns(connection: duckdb.DuckDBPyConnection) -> None:
    """Fills the columns EPISODE_COLUMNS of all stored programmes, _CHUNK_ROWS programmes at a time."""
    first_id, last_id = connection.execute(
        "SELECT min(programme_id), max(programme_id) FROM programmes"
    ).fetchall()[0]
    reader = EpisodeReader()
    for begin_id in range(first_id or 0, (last_id or -1) + 1, _CHUNK_ROWS):
        query = """
            SELECT programme_id, title, sub_title, episode_numbers,
                   coalesce(episode_systems, [NULL::VARCHAR FOR _ IN episode_numbers]) AS episode_systems
            FROM programmes
            WHERE programme_id >= ? AND programme_id < ?
        """
        rows = connection.execute(query, [begin_id, begin_id + _CHUNK_ROWS]).to_arrow_table()
        names = ["programme_id", *EPISODE_COLUMNS]
        parsed = pa.table([rows["programme_id"], *reader.columns(rows)], names)  # noqa: F841  (SQL reads it)
        columns = ", ".join(f"{name} = parsed.{name}" for name in EPISODE_COLUMNS)
        connection.execute(
            f"UPDATE programmes SET {columns} FROM parsed WHERE parsed.programme_id = programmes.programme_id"
        )


def _combine_chunks(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
