"""Season, episode and part of programmes as integers, read from episode numbers, title and sub-title.

A distinct text is read once: rows hold codes of what was read, which become columns in the end.
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
_PART = 100_000  # programmes read at a time


class EpisodeReader:
    """Reads the programmes of a feed batch by batch."""

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
        """``COLUMNS`` (int32) of rows with title, sub_title, episode_numbers and episode_systems."""
        codes = self._of_lists(_joined(rows["episode_numbers"]), _joined(rows["episode_systems"]))
        open_codes = np.array([number.episode is None for number in self._readings])
        places = np.flatnonzero(open_codes[codes])
        texts = np.zeros((2, len(places)), dtype=np.int64)
        for own, name, of_text in zip(
            texts, ("title", "sub_title"), (self._titles, self._sub_titles), strict=True
        ):
            column = _joined(rows[name]).take(pa.array(places))
            counted = np.flatnonzero(np.asarray(pc.match_substring_regex(column, r"\p{Nd}").fill_null(False)))  # pyright: ignore[reportAttributeAccessIssue]
            distinct = column.take(pa.array(counted)).dictionary_encode()
            of_distinct = np.array(
                [of_text[text] for text in distinct.dictionary.to_pylist()], dtype=np.int64
            )
            own[counted] = of_distinct[distinct.indices.to_numpy()]
        told = np.flatnonzero(texts.any(axis=0))
        triples = zip(codes[places[told]].tolist(), *texts[:, told].tolist(), strict=True)
        codes[places[told]] = [self._completed[triple] for triple in triples]
        taken = pa.array(codes)
        return [pa.array(values, pa.int32()).take(taken) for values in zip(*self._readings, strict=True)]

    def _code(self, number: EpisodeNumber) -> int:
        if (code := self._code_of.setdefault(number, len(self._readings))) == len(self._readings):
            self._readings.append(number)
        return code

    def _of_lists(self, numbers: pa.ListArray, systems: pa.ListArray) -> np.ndarray:
        """The code of each row's elements."""
        texts, names = (lists.flatten().dictionary_encode() for lists in (numbers, systems))
        width = len(names.dictionary) + 1  # the last is none
        pairs = texts.indices.to_numpy().astype(np.int64) * width
        pairs = pa.array(pairs + names.indices.fill_null(width - 1).to_numpy()).dictionary_encode()
        words, systems_of = texts.dictionary.to_pylist(), [*names.dictionary.to_pylist(), None]
        elements = [(systems_of[pair % width], words[pair // width]) for pair in pairs.dictionary.to_pylist()]
        of_element = np.array([self._elements[element,] for element in elements], dtype=np.int64)
        lengths, places = numbers.value_lengths().fill_null(0).to_numpy(), pairs.indices.to_numpy()
        begins = np.cumsum(lengths) - lengths
        codes = np.zeros(len(numbers), dtype=np.int64)
        codes[lengths == 1] = of_element[places[begins[lengths == 1]]]
        of_several = _Codes(lambda own: self._elements[tuple(elements[place] for place in own)])
        for row in np.flatnonzero(lengths > 1).tolist():
            codes[row] = of_several[tuple(places[begins[row] : begins[row] + lengths[row]].tolist())]
        return codes


class _Codes(dict):
    """A dictionary that computes what it lacks."""

    def __init__(self, code: Callable[[Any], int]) -> None:
        self._code = code

    def __missing__(self, key: Any) -> int:
        code = self[key] = self._code(key)
        return code


def fill_episode_columns(connection: duckdb.DuckDBPyConnection) -> None:
    """Fills the columns of all stored programmes, a part in each transaction."""
    first, last = connection.execute(
        "SELECT min(programme_id), max(programme_id) FROM programmes"
    ).fetchall()[0]
    reader = EpisodeReader()
    for begin in range(first or 0, (last or -1) + 1, _PART):
        query = """
            SELECT programme_id, title, sub_title, episode_numbers,
                   coalesce(episode_systems, [NULL::VARCHAR FOR _ IN episode_numbers]) AS episode_systems
            FROM programmes
            WHERE programme_id >= ? AND programme_id < ?
        """
        rows = connection.execute(query, [begin, begin + _PART]).to_arrow_table()
        read = pa.table([rows["programme_id"], *reader.columns(rows)], names=["programme_id", *COLUMNS])  # noqa: F841  (found by its name)
        columns = ", ".join(f"{name} = read.{name}" for name in COLUMNS)
        connection.execute(
            f"UPDATE programmes SET {columns} FROM read WHERE read.programme_id = programmes.programme_id"
        )


def _joined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
