"""Parses season, episode and part of programmes from episode numbers, titles and sub-titles.

Each distinct text is parsed once. Rows hold codes of parsed numbers, which are converted to columns last.
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
_CHUNK_ROWS = 100_000  # programmes in memory


class EpisodeReader:
    """Parses the programmes of a feed, batch by batch."""

    def __init__(self) -> None:
        self._code_of: dict[EpisodeNumber, int] = {NOTHING: 0}
        self._readings = [NOTHING]
        self._elements = _Codes(lambda elements: self._code(read_numbers(elements)))
        self._titles = _Codes(lambda text: self._code(read_text(text, True)))
        self._sub_titles = _Codes(lambda text: self._code(read_text(text, False)))
        self._completed = _Codes(
            lambda codes: self._code(complete(*(self._readings[code] for code in codes)))
        )

    def columns(self, rows: pa.RecordBatch | pa.Table) -> list[pa.Array]:
        """Returns ``COLUMNS`` (int32) of rows with title, sub_title, episode_numbers and episode_systems."""
        codes = self._list_codes(_combined(rows["episode_numbers"]), _combined(rows["episode_systems"]))
        open_codes = np.array([number.episode is None for number in self._readings])
        places = np.flatnonzero(open_codes[codes])
        texts = np.zeros((2, len(places)), dtype=np.int64)
        for text_codes, name, code_of in zip(
            texts, ("title", "sub_title"), (self._titles, self._sub_titles), strict=True
        ):
            column = _combined(rows[name]).take(pa.array(places))
            counted = np.flatnonzero(np.asarray(pc.match_substring_regex(column, r"\p{Nd}").fill_null(False)))  # pyright: ignore[reportAttributeAccessIssue]
            distinct = column.take(pa.array(counted)).dictionary_encode()
            distinct_codes = np.array(
                [code_of[text] for text in distinct.dictionary.to_pylist()], dtype=np.int64
            )
            text_codes[counted] = distinct_codes[distinct.indices.to_numpy()]
        changed = np.flatnonzero(texts.any(axis=0))
        triples = zip(codes[places[changed]].tolist(), *texts[:, changed].tolist(), strict=True)
        codes[places[changed]] = [self._completed[triple] for triple in triples]
        taken = pa.array(codes)
        return [pa.array(values, pa.int32()).take(taken) for values in zip(*self._readings, strict=True)]

    def _code(self, number: EpisodeNumber) -> int:
        if (code := self._code_of.setdefault(number, len(self._readings))) == len(self._readings):
            self._readings.append(number)
        return code

    def _list_codes(self, numbers: pa.ListArray, systems: pa.ListArray) -> np.ndarray:
        """Returns the code of the episode numbers of each row."""
        texts, names = (lists.flatten().dictionary_encode() for lists in (numbers, systems))
        width = len(names.dictionary) + 1  # the last code stands for no system
        pairs = texts.indices.to_numpy().astype(np.int64) * width
        pairs = pa.array(pairs + names.indices.fill_null(width - 1).to_numpy()).dictionary_encode()
        words, systems_of = texts.dictionary.to_pylist(), [*names.dictionary.to_pylist(), None]
        elements = [(systems_of[pair % width], words[pair // width]) for pair in pairs.dictionary.to_pylist()]
        of_element = np.array([self._elements[element,] for element in elements], dtype=np.int64)
        lengths, places = numbers.value_lengths().fill_null(0).to_numpy(), pairs.indices.to_numpy()
        begins = np.cumsum(lengths) - lengths
        codes = np.zeros(len(numbers), dtype=np.int64)
        codes[lengths == 1] = of_element[places[begins[lengths == 1]]]
        of_several = _Codes(lambda pair_codes: self._elements[tuple(elements[place] for place in pair_codes)])
        for row in np.flatnonzero(lengths > 1).tolist():
            codes[row] = of_several[tuple(places[begins[row] : begins[row] + lengths[row]].tolist())]
        return codes


class _Codes(dict):
    """A dictionary that computes missing values."""

    def __init__(self, code: Callable[[Any], int]) -> None:
        self._code = code

    def __missing__(self, key: Any) -> int:
        code = self[key] = self._code(key)
        return code


def fill_episode_columns(connection: duckdb.DuckDBPyConnection) -> None:
    """Fills the columns of all stored programmes in chunks."""
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
