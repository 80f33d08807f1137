"""Looks up the ids of tokens, which the files of a Vocabulary contain as text, by SQL joins."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from storage.arrays import Ragged
from storage.catalogue.connection import Connection, escape_glob


class TokenIds:
    """Looks up the ids of the tokens and the context tokens of titles, in tables on disk.

    Args:
        connection: Temporary database.
        dictionaries: Files named ``…-PIECE.parquet`` with the columns kind and token, one for each piece of
            the titles.
        contexts: Parquet file with the columns title_id, kind and token, sorted by them.
        tokens: Parquet file with token_id, kind and token.
    """

    def __init__(
        self, connection: Connection, dictionaries: Sequence[Path], contexts: Path, tokens: Path
    ) -> None:
        self._connection = connection
        query = "CREATE TABLE tokens AS SELECT token_id::INT AS token_id, kind, token FROM read_parquet(?)"
        connection.execute(query, [escape_glob(tokens)])
        query = r"""
            CREATE TABLE dictionary_ids AS
            SELECT regexp_extract(filename, '(\d+)\.parquet$', 1)::INT AS piece,
                   file_row_number AS row_number, coalesce(token_id, -1) AS token_id
            FROM read_parquet(?, file_row_number = true, filename = true)
            LEFT JOIN tokens USING (kind, token)
        """
        connection.execute(query, [[*map(escape_glob, dictionaries)]])
        query = """
            CREATE TABLE context_ids AS
            SELECT title_id, file_row_number AS row_number, token_id
            FROM read_parquet(?, file_row_number = true)
            JOIN tokens USING (kind, token)
            ORDER BY title_id, row_number
        """
        connection.execute(query, [escape_glob(contexts)])

    def ids_of_dictionary(self, piece: int) -> np.ndarray:
        """Returns the id of each token in the dictionary of a piece, int32 (rows,); -1 for unknown tokens."""
        query = "SELECT token_id FROM dictionary_ids WHERE piece = ? ORDER BY row_number"
        return np.asarray(self._connection.execute(query, [piece]).fetchnumpy()["token_id"], dtype=np.int32)

    def ids_of_contexts(self, begin: int, end: int) -> Ragged:
        """Returns the ids of the context tokens of titles ``begin`` to ``end`` (exclusive)."""
        query = "FROM context_ids WHERE title_id >= ? AND title_id < ? ORDER BY title_id, row_number"
        columns = self._connection.execute(query, [begin, end]).fetchnumpy()
        lengths = np.bincount(np.asarray(columns["title_id"], np.int64) - begin, minlength=end - begin)
        return Ragged(np.append(0, np.cumsum(lengths)), np.asarray(columns["token_id"], dtype=np.int32))
