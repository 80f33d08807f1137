"""Parses season, episode and part of programmes from episode numbers, titles and sub-titles.

Each distinct text is parsed once. A code is the index of a parsed number in a list of distinct numbers. While
programmes are parsed, arrays hold one code per programme; codes are converted to columns last.
"""

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage.episodes.numbers import NOTHING, EpisodeNumber, complete, read_numbers, read_text

COLUMNS = EpisodeNumber._fields
MIGRATION = "episode_columns"  # name of the migration that adds the columns
_UNIT, _RECORD = "\x1f", "\x1e"  # separators; cleaned texts contain no control characters
_CHUNK_ROWS = 100_000  # programmes in memory at once


class EpisodeReader:
    """Parses the programmes of a feed, batch by batch."""

    def __init__(self) -> None:
        self._numbers = [NOTHING]  # index: code
        self._code_of: dict[EpisodeNumber, int] = {NOTHING: 0}
        self._elements = _Codes(lambda joined: self._code(read_numbers(_split(joined))))
        self._titles = _Codes(lambda text: self._code(read_text(text, True)))
        self._sub_titles = _Codes(lambda text: self._code(read_text(text, False)))
        self._completed = _Codes(lambda codes: self._code(complete(*(self._numbers[code] for code in codes))))

    def columns(self, rows: pa.RecordBatch | pa.Table) -> list[pa.Array]:
        """Returns ``COLUMNS`` (int32) for rows with title, sub_title, episode_numbers and episode_systems."""
        codes = self._elements.encode(_join(rows["episode_systems"], rows["episode_numbers"]))
        has_episode = np.array([number.episode is not None for number in self._numbers])
        incomplete = np.flatnonzero(~has_episode[codes])
        titles, sub_titles = (
            cache.encode(_texts_with_digits(rows[name].take(pa.array(incomplete))))
            for name, cache in (("title", self._titles), ("sub_title", self._sub_titles))
        )
        changed = np.flatnonzero(titles | sub_titles)
        triples = np.stack([codes[incomplete], titles, sub_titles], axis=1)[changed].tolist()
        codes[incomplete[changed]] = [self._completed[tuple(triple)] for triple in triples]
        indices = pa.array(codes)
        return [pa.array(values, pa.int32()).take(indices) for values in zip(*self._numbers, strict=True)]

    def _code(self, number: EpisodeNumber) -> int:
        if (code := self._code_of.setdefault(number, len(self._numbers))) == len(self._numbers):
            self._numbers.append(number)
        return code


class _Codes(dict):
    """A dictionary from keys to codes; ``code`` computes the code of a missing key."""

    def __init__(self, code: Callable[[Any], int]) -> None:
        self._code = code

    def __missing__(self, key: Any) -> int:
        code = self[key] = self._code(key)
        return code

    def encode(self, texts: pa.Array) -> np.ndarray:
        """Returns the code of each text, int64 (texts,); each distinct text is looked up once."""
        encoded = texts.dictionary_encode()
        codes = np.array([self[text] for text in encoded.dictionary.to_pylist()], dtype=np.int64)
        return codes[encoded.indices.to_numpy()]


def _join(*columns: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Joins the lists of each row to one text; null elements become empty."""
    texts = []
    for column in map(_combined, columns):
        lists = pa.ListArray.from_arrays(column.offsets, column.values.fill_null(""))
        texts.append(pc.binary_join(lists, _UNIT))  # pyright: ignore[reportAttributeAccessIssue]
    return pc.binary_join_element_wise(*texts, _RECORD)  # pyright: ignore[reportAttributeAccessIssue]


def _split(joined: str) -> tuple[tuple[str, str], ...]:
    """Returns (system, number) of each ``episode-num`` element in a text made by ``_join``."""
    systems, numbers = (text.split(_UNIT) for text in joined.split(_RECORD))
    return tuple(zip(systems, numbers, strict=True))


def _texts_with_digits(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Returns the texts; null and texts without digits become ''."""
    texts = _combined(column).fill_null("")
    return pc.if_else(pc.match_substring_regex(texts, r"\p{Nd}"), texts, "")  # pyright: ignore[reportAttributeAccessIssue]


def fill_episode_columns(connection: duckdb.DuckDBPyConnection) -> None:
    """Fills ``COLUMNS`` of all stored programmes in chunks."""
    first, last = connection.execute(
        "SELECT min(programme_id), max(programme_id) FROM programmes"
    ).fetchall()[0]
    reader = EpisodeReader()
    for begin in range(first or 0, (last or -1) + 1, _CHUNK_ROWS):
        query = """
            SELECT programme_id, title, sub_title, episode_numbers,
                   coalesce(episode_systems, [NULL::VARCHAR FOR _ IN episode_numbers]) AS episode_systems
            FROM programmes
            WHERE programme_id >= ? AND programme_id < ?
        """
        rows = connection.execute(query, [begin, begin + _CHUNK_ROWS]).to_arrow_table()
        read = pa.table([rows["programme_id"], *reader.columns(rows)], names=["programme_id", *COLUMNS])  # noqa: F841  (a replacement scan reads it)
        columns = ", ".join(f"{name} = read.{name}" for name in COLUMNS)
        connection.execute(
            f"UPDATE programmes SET {columns} FROM read WHERE read.programme_id = programmes.programme_id"
        )


def _combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
