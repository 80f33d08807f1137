"""The frequency table of tokens, counted by DuckDB over training titles and published as Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa


def write_token_table(
    occurrences: pa.Table, thinned: Sequence[str], minimum_titles: int, exponent: float, smallest: float, largest: float, path: Path
) -> int:
    """Counts tokens and writes tokens.parquet, row i being token id i.

    Ids fall with document frequency (ties by kind and text), so that "hot" is ``id < K``. The inverse-frequency weight
    of a row's step is (median document frequency / its own)^exponent, clamped.

    Args:
        occurrences: title_id, kind, token: one row an occurrence in a training title.
        thinned: Kinds whose tokens need ``minimum_titles``; the others get a row from their first title on.
        minimum_titles: Training titles that must hold a token of a thinned kind.
        exponent: 0 gives every row the weight 1.
        smallest: Lower clamp.
        largest: Upper clamp.
        path: Where to write: token_id, kind, token, term_frequency, document_frequency, weight.

    Returns:
        Number of tokens.
    """
    with duckdb.connect() as connection:
        connection.register("occurrences", occurrences)
        connection.execute(
            """
            CREATE TABLE tokens AS
            WITH counted AS (
                SELECT kind, token, count(*) AS term_frequency, count(DISTINCT title_id) AS document_frequency
                FROM occurrences
                GROUP BY kind, token
            ),
            kept AS (
                SELECT *
                FROM counted
                WHERE document_frequency >= $minimum OR NOT list_contains($thinned, kind)
            )
            SELECT row_number() OVER (ORDER BY document_frequency DESC, kind, token) - 1 AS token_id,
                   kind,
                   token,
                   term_frequency,
                   document_frequency,
                   greatest($smallest, least($largest, pow(median(document_frequency) OVER () / document_frequency, $exponent)))::FLOAT AS weight
            FROM kept
            """,
            {"minimum": minimum_titles, "thinned": list(thinned), "smallest": smallest, "largest": largest, "exponent": exponent},
        )
        connection.execute(f"COPY (SELECT * FROM tokens ORDER BY token_id) TO '{str(path).replace(chr(39), chr(39) * 2)}' (FORMAT parquet, COMPRESSION zstd)")
        counted = connection.execute("SELECT count(*) FROM tokens").fetchall()
    return int(counted[0][0])
