"""The frequency table of tokens, counted by DuckDB over training titles and published as Parquet.

Ids fall with document frequency, so that the frequent tokens are ``id < k``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from storage.catalogue.bounded import bounded
from storage.catalogue.paths import parquet, quoted

ROWS = 4_000_000  # counts added up at once: DuckDB holds the groups of all, however much it may spill; 22 million were too many for 600 MB


@dataclass(frozen=True, kw_only=True)
class TokenRules:
    """Which tokens get a row, and how far its steps go.

    Attributes:
        thinned: Kinds whose tokens need ``minimum_titles``; the others get a row from their first title on.
        minimum_titles: Training titles that must hold a token of a thinned kind.
        exponent: Of the inverse-frequency weight (median document frequency / its own)^exponent; 0 gives every row 1.
        smallest: Its lower clamp.
        largest: Its upper clamp.
    """

    thinned: Sequence[str]
    minimum_titles: int
    exponent: float
    smallest: float
    largest: float


def write_token_table(counts: Sequence[Path], rules: TokenRules, path: Path) -> int:
    """Adds up counts of tokens and writes tokens.parquet, row i being token id i.

    Args:
        counts: Parquet files of kind, token, term_frequency, document_frequency: counts over training titles, each
            title in one of them. A token may be in several, and with counts of 0.
        rules: Which tokens get a row.
        path: Where to write: token_id, kind, token, term_frequency, document_frequency, weight.

    Returns:
        Number of tokens.
    """
    with bounded(path.parent) as connection:
        _add_up(connection, counts, path.parent)
        connection.execute(
            """
            CREATE TABLE sorted AS
            SELECT row_number() OVER (ORDER BY document_frequency DESC, kind, token) - 1 AS token_id, *
            FROM counted
            WHERE document_frequency >= $minimum OR NOT list_contains($thinned, kind)
            """,
            {"minimum": rules.minimum_titles, "thinned": list(rules.thinned)},
        )
        connection.execute(
            f"""
            COPY (
                SELECT token_id,
                       kind,
                       token,
                       term_frequency,
                       document_frequency,
                       greatest(
                           {rules.smallest},
                           least(
                               {rules.largest},
                               pow((SELECT median(document_frequency) FROM sorted) / document_frequency, {rules.exponent})
                           )
                       )::FLOAT AS weight
                FROM sorted
                ORDER BY token_id
            ) TO '{quoted(str(path))}' (FORMAT parquet, COMPRESSION zstd)
            """
        )
        return connection.execute("SELECT count(*) FROM sorted").fetchall()[0][0]


def _add_up(connection: duckdb.DuckDBPyConnection, counts: Sequence[Path], folder: Path) -> None:
    """Makes the table ``counted``: each token once. Many counts are spread over files by token first, and added up file by file."""
    connection.execute("CREATE TABLE counted (kind VARCHAR, token VARCHAR, term_frequency BIGINT, document_frequency BIGINT)")
    parts = -(-sum(pq.read_metadata(file).num_rows for file in counts) // ROWS)
    with tempfile.TemporaryDirectory(dir=folder, prefix="parts-") as name:
        if parts > 1:
            query = "SELECT kind, token, term_frequency, document_frequency, hash(kind, token) % $parts AS part FROM read_parquet($counts)"
            spread = connection.sql(query, params={"parts": parts, "counts": [parquet(file) for file in counts]})
            spread.write_parquet(name, compression="lz4", partition_by=["part"], overwrite=True)
        files = [counts] if parts == 1 else [sorted(part.iterdir()) for part in sorted(Path(name).iterdir())]
        for part in files:
            connection.execute(
                """
                INSERT INTO counted
                SELECT kind, token, sum(term_frequency), sum(document_frequency)
                FROM read_parquet(?, hive_partitioning = false)
                GROUP BY kind, token
                HAVING sum(document_frequency) > 0
                """,
                [[parquet(file) for file in part]],
            )
