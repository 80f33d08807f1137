"""Which id each token has: joins of the pieces' dictionaries and of the contexts with the frequency table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np

from storage.arrays import Ragged
from storage.catalogue.bounded import bounded
from storage.catalogue.paths import parquet


class TokenIds:
    """Ids of tokens that a training title holds; made by ``open_token_ids``."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def of_dictionary(self, number: int) -> np.ndarray:
        """int32 (tokens of the piece,): ids of a piece's tokens, -1 where one has none."""
        return self._column("SELECT token_id FROM of_dictionaries WHERE piece = ? ORDER BY row_number", [number])

    def of_contexts(self, begin: int, end: int) -> Ragged:
        """Ids of the context tokens of titles begin to end (that one left out), in the order of their texts."""
        titles, ids = self._connection.execute(
            "SELECT title_id, token_id FROM of_contexts WHERE title_id >= ? AND title_id < ? ORDER BY title_id, place", [begin, end]
        ).fetchnumpy().values()  # fmt: skip
        lengths = np.bincount(np.asarray(titles, dtype=np.int64) - begin, minlength=end - begin)
        return Ragged(np.concatenate([[0], np.cumsum(lengths)]), np.asarray(ids, dtype=np.int32))

    def _column(self, query: str, given: list[int]) -> np.ndarray:
        (column,) = self._connection.execute(query, given).fetchnumpy().values()
        return np.asarray(column, dtype=np.int32)


@contextmanager
def open_token_ids(dictionaries: Sequence[Path], contexts: Path, tokens: Path, folder: Path) -> Iterator[TokenIds]:
    """Joins on disk, in bounded memory.

    Args:
        dictionaries: ``…-PIECE.parquet``: kind and token, row i being the piece's own id i.
        contexts: title_id, kind, token; sorted by all three.
        tokens: The frequency table.
        folder: For what does not fit in memory; gone afterwards.
    """
    with bounded(folder) as connection:
        connection.execute("CREATE TABLE known AS SELECT token_id::INT AS token_id, kind, token FROM read_parquet(?)", [parquet(tokens)])
        connection.execute("CREATE TABLE of_dictionaries (piece INT, row_number BIGINT, token_id INT)")
        if dictionaries:
            connection.execute(
                r"""
                INSERT INTO of_dictionaries
                SELECT regexp_extract(filename, '(\d+)\.parquet$', 1)::INT, file_row_number, coalesce(token_id, -1)
                FROM read_parquet(?, file_row_number = true, filename = true)
                LEFT JOIN known USING (kind, token)
                """,
                [[parquet(file) for file in dictionaries]],
            )
        connection.execute(
            """
            CREATE TABLE of_contexts AS
            SELECT title_id, file_row_number AS place, token_id
            FROM read_parquet(?, file_row_number = true)
            JOIN known USING (kind, token)
            ORDER BY title_id, place
            """,
            [parquet(contexts)],
        )
        yield TokenIds(connection)
