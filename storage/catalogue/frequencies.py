"""The frequency table of tokens, the ids that it gives them, and frequencies per language, category and week.

Token ids fall with document frequency over training titles, so that the frequent tokens are ``id < k``.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq

from storage.arrays import Ragged
from storage.catalogue.connection import escape_glob, escape_quotes, temporary_database

ROWS = 4_000_000  # counts added up at once: groups do not spill, and 22 million were too many for 600 MB


@dataclass(frozen=True, kw_only=True)
class TokenRules:
    """Which tokens get a row, and its weight: (median document frequency / its own)^exponent, clamped."""

    thinned: Sequence[str]  # kinds whose tokens need ``minimum_titles`` training titles; the others need one
    minimum_titles: int
    exponent: float
    smallest: float
    largest: float


def write_token_table(counts: Sequence[Path], rules: TokenRules, path: Path) -> int:
    """Adds up counts of tokens, writes tokens.parquet (row i is token id i) and returns its number of rows.

    Args:
        counts: Parquet files of kind, token, term_frequency, document_frequency over training titles, each
            title in one file. A token may be in several, and with counts of 0.
        path: Where to write: token_id, kind, token, term_frequency, document_frequency, weight.
    """
    with temporary_database(path.parent) as connection:
        _add_up(connection, counts, path.parent)
        query = """
            CREATE TABLE sorted AS
            SELECT row_number() OVER (ORDER BY document_frequency DESC, kind, token) - 1 AS token_id, *
            FROM counted
            WHERE document_frequency >= $minimum OR NOT list_contains($thinned, kind)
        """
        connection.execute(query, {"minimum": rules.minimum_titles, "thinned": list(rules.thinned)})
        ratio = "(SELECT median(document_frequency) FROM sorted) / document_frequency"
        weight = f"greatest({rules.smallest}, least({rules.largest}, pow({ratio}, {rules.exponent})))"
        return connection.execute(f"""
            COPY (
                SELECT token_id, kind, token, term_frequency, document_frequency, {weight}::FLOAT AS weight
                FROM sorted
                ORDER BY token_id
            ) TO '{escape_quotes(path)}' (FORMAT parquet, COMPRESSION zstd)
        """).fetchall()[0][0]


def _add_up(connection: duckdb.DuckDBPyConnection, counts: Sequence[Path], folder: Path) -> None:
    """Makes the table ``counted``: each token once. Many counts are spread over files by token first."""
    columns = "kind VARCHAR, token VARCHAR, term_frequency BIGINT, document_frequency BIGINT"
    connection.execute(f"CREATE TABLE counted ({columns})")
    parts = -(-sum(pq.read_metadata(file).num_rows for file in counts) // ROWS)
    with tempfile.TemporaryDirectory(dir=folder, prefix="parts-") as name:
        groups = [counts] * parts
        if parts > 1:
            query = """
                SELECT kind, token, term_frequency, document_frequency, hash(kind, token) % $parts AS part
                FROM read_parquet($counts)
            """
            spread = connection.sql(query, params={"parts": parts, "counts": [*map(escape_glob, counts)]})
            spread.write_parquet(name, compression="lz4", partition_by=["part"], overwrite=True)
            groups = [sorted(part.iterdir()) for part in sorted(Path(name).iterdir())]
        query = """
            INSERT INTO counted
            SELECT kind, token, sum(term_frequency), sum(document_frequency)
            FROM read_parquet(?, hive_partitioning = false)
            GROUP BY kind, token
            HAVING sum(document_frequency) > 0
        """
        for files in groups:
            connection.execute(query, [[*map(escape_glob, files)]])


@dataclass(frozen=True)
class TokenIds:
    """Ids of tokens that a training title holds; made by ``open_token_ids``."""

    connection: duckdb.DuckDBPyConnection

    def of_dictionary(self, number: int) -> np.ndarray:
        """int32 (tokens of the piece,): ids of a piece's tokens, -1 where one has none."""
        query = "SELECT token_id FROM of_dictionaries WHERE piece = ? ORDER BY row_number"
        return np.asarray(self.connection.execute(query, [number]).fetchnumpy()["token_id"], dtype=np.int32)

    def of_contexts(self, begin: int, end: int) -> Ragged:
        """Ids of the context tokens of titles begin to end (exclusive), in the order of their texts."""
        query = "FROM of_contexts WHERE title_id >= ? AND title_id < ? ORDER BY title_id, place"
        columns = self.connection.execute(query, [begin, end]).fetchnumpy()
        lengths = np.bincount(np.asarray(columns["title_id"], np.int64) - begin, minlength=end - begin)
        return Ragged(np.append(0, np.cumsum(lengths)), np.asarray(columns["token_id"], dtype=np.int32))


@contextmanager
def open_token_ids(
    dictionaries: Sequence[Path], contexts: Path, tokens: Path, folder: Path
) -> Iterator[TokenIds]:
    """Joins dictionaries and contexts with the frequency table, on disk.

    Args:
        dictionaries: ``…-PIECE.parquet``: kind and token, row i being the piece's own id i.
        contexts: title_id, kind, token; sorted by all three.
    """
    with temporary_database(folder) as connection:
        query = "CREATE TABLE known AS SELECT token_id::INT AS token_id, kind, token FROM read_parquet(?)"
        connection.execute(query, [escape_glob(tokens)])
        query = r"""
            CREATE TABLE of_dictionaries AS
            SELECT regexp_extract(filename, '(\d+)\.parquet$', 1)::INT AS piece,
                   file_row_number AS row_number, coalesce(token_id, -1) AS token_id
            FROM read_parquet(?, file_row_number = true, filename = true)
            LEFT JOIN known USING (kind, token)
        """
        connection.execute(query, [[*map(escape_glob, dictionaries)]])
        query = """
            CREATE TABLE of_contexts AS
            SELECT title_id, file_row_number AS place, token_id
            FROM read_parquet(?, file_row_number = true)
            JOIN known USING (kind, token)
            ORDER BY title_id, place
        """
        connection.execute(query, [escape_glob(contexts)])
        yield TokenIds(connection)


_SLICES = (  # counted one after the other: the groups of one are in memory
    ("language", "language", "NULL", "held WHERE language IS NOT NULL"),
    ("category", "label", "NULL", "held JOIN labelled USING (title_id)"),
    ("week", "week", "sum(airings)", "held JOIN aired USING (title_id)"),
)
_COUNTED = """
    SELECT '{}' AS slice, {} AS value, token_id,
           coalesce(sum(times) FILTER (training), 0)::BIGINT AS term_frequency,
           count(*) FILTER (training) AS document_frequency, count(*) AS titles, {}::BIGINT AS airings
    FROM {}
    GROUP BY ALL
"""


def write_slices(guide: Path, vocabulary: Path, entries: Path, labels: Path, path: Path) -> int:
    """Writes frequencies.parquet and returns its number of rows. A word without a token id is not counted.

    Args:
        vocabulary: titles.parquet, variants.parquet and tokens.parquet of this folder are read.
        entries: Parquet of title_id, token_id: one row per occurrence of a word in a title.
        labels: Parquet of title_id, label: the titles' categories.
        path: Where to write: slice (language, category, week), value (a week is its Monday, as text),
            token_id, token, term_frequency and document_frequency (over training titles), titles (all but
            placeholders, since a word new this week is mostly held out), airings (of these titles in that
            week; null for other slices).
    """
    with temporary_database(path.parent) as connection:
        query = """
            CREATE TABLE held AS
            SELECT title_id, token_id, count(*) AS times,
                   any_value(split) = 'train' AS training, any_value(language) AS language
            FROM read_parquet(?)
            JOIN (
                SELECT file_row_number::INTEGER AS title_id, language, split
                FROM read_parquet(?, file_row_number = true)
            ) USING (title_id)
            WHERE split <> 'placeholder'
            GROUP BY title_id, token_id
        """
        connection.execute(query, [escape_glob(entries), escape_glob(vocabulary / "titles.parquet")])
        query = """
            CREATE TABLE aired AS
            SELECT title_id, strftime(date_trunc('week', start), '%Y-%m-%d') AS week, count(*) AS airings
            FROM read_parquet(?)
            JOIN read_parquet(?) ON raw_title = title
            GROUP BY ALL
        """
        files = guide / "programmes.parquet", vocabulary / "variants.parquet"
        connection.execute(query, [*map(escape_glob, files)])
        connection.execute("CREATE TABLE labelled AS FROM read_parquet(?)", [escape_glob(labels)])
        counted = " UNION ALL ".join(_COUNTED.format(*part) for part in _SLICES)
        connection.execute(f"CREATE TABLE counted AS {counted}")
        tokens = escape_quotes(escape_glob(vocabulary / "tokens.parquet"))
        columns = "slice, value, token_id, token, c.term_frequency, c.document_frequency, titles, airings"
        return connection.execute(f"""
            COPY (
                SELECT {columns}
                FROM counted AS c
                JOIN read_parquet('{tokens}') USING (token_id)
                ORDER BY slice, value, titles DESC, token
            ) TO '{escape_quotes(path)}' (FORMAT parquet, COMPRESSION zstd)
        """).fetchall()[0][0]
