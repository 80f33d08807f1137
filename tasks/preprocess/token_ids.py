"""Looks up the token ids of local tokens of pieces (storage/formats/vocabulary.py) and of contexts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from storage.arrays import Ragged
from storage.catalogue.connection import Connection, escape_glob


class TokenIds:
    """Joins dictionaries and contexts with the token table of a Vocabulary, on disk.

    Args:
        connection: Temporary database.
        dictionaries: Files named ``…-PIECE.parquet`` with kind and token. Row i has local id i of the piece.
        contexts: Parquet file of title_id, kind and token, sorted by all three.
        tokens: Parquet file of token_id, kind and token.
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

    def of_dictionary(self, piece: int) -> np.ndarray:
        """Returns ids of the local tokens of a piece, int32 (local tokens,); -1: not in the table."""
        query = "SELECT token_id FROM dictionary_ids WHERE piece = ? ORDER BY row_number"
        return np.asarray(self._connection.execute(query, [piece]).fetchnumpy()["token_id"], dtype=np.int32)

    def of_contexts(self, begin: int, end: int) -> Ragged:
        """Returns the ids of context tokens of titles in [begin, end), in the order of ``contexts``."""
        query = "FROM context_ids WHERE title_id >= ? AND title_id < ? ORDER BY title_id, row_number"
        columns = self._connection.execute(query, [begin, end]).fetchnumpy()
        lengths = np.bincount(np.asarray(columns["title_id"], np.int64) - begin, minlength=end - begin)
        return Ragged(np.append(0, np.cumsum(lengths)), np.asarray(columns["token_id"], dtype=np.int32))
