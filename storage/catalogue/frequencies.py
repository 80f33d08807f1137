"""The frequency table of tokens, counted by DuckDB over training titles and published as Parquet.

Ids fall with document frequency when a vocabulary is created or compacted, so that "hot" is ``id < K``. In between it
only grows: a token keeps the id that it had in the ancestor, new ones are appended (among themselves by frequency), and a
token that no training title holds tonight stays with a document frequency of 0: a row that is kept, not one that is known.
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
class TokenTable:
    """What was written.

    Attributes:
        tokens: Rows.
        kept: Of them, with the id that they had in the ancestor.
        alive: Of them, held by a training title.
        hot_hit_rate: Share of occurrences in training titles that the hot prefix serves.
        sorted_hit_rate: The same if ids were sorted anew.
        compacted: Whether they were, so that ids differ from the ancestor's.
    """

    tokens: int
    kept: int
    alive: int
    hot_hit_rate: float
    sorted_hit_rate: float
    compacted: bool


@dataclass(frozen=True, kw_only=True)
class TokenRules:
    """Who gets a row, how far it steps, and when ids are sorted anew.

    Attributes:
        thinned: Kinds whose tokens need ``minimum_titles``; the others get a row from their first title on.
        minimum_titles: Training titles that must hold a token of a thinned kind. A token with a row keeps it.
        exponent: Of the inverse-frequency weight (median document frequency / its own)^exponent; 0 gives every row 1.
        smallest: Its lower clamp.
        largest: Its upper clamp.
        hot_share: The hot prefix as a share of the rows.
        compact_at: Ids are sorted anew when the hot prefix serves this much less (of 1) than it would after that.
    """

    thinned: Sequence[str]
    minimum_titles: int
    exponent: float
    smallest: float
    largest: float
    hot_share: float = 0.1
    compact_at: float = 0.05


def write_token_table(counts: Sequence[Path], rules: TokenRules, path: Path, ancestor: Path | None = None) -> TokenTable:
    """Adds up counts of tokens and writes tokens.parquet, row i being token id i.

    Args:
        counts: Parquet files of kind, token, term_frequency, document_frequency: counts over training titles, each title in one of
            them. A token may stand in many, and with counts of 0.
        rules: Who gets a row.
        path: Where to write: token_id, kind, token, term_frequency, document_frequency, weight.
        ancestor: tokens.parquet whose ids stay; None numbers them afresh.
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
        chosen, kept, compacted = "sorted", 0, False
        if ancestor is not None:
            kept = _grow(connection, ancestor)
            rate, possible = (_hit_rate(connection, table, rules.hot_share) for table in ("grown", "sorted"))
            compacted = possible - rate >= rules.compact_at
            chosen = "sorted" if compacted else "grown"
        connection.execute(
            f"""
            COPY (
                WITH typical AS (
                    SELECT median(document_frequency) AS titles
                    FROM {chosen}
                    WHERE document_frequency > 0
                )
                SELECT token_id,
                       kind,
                       token,
                       term_frequency,
                       document_frequency,
                       greatest({rules.smallest}, least({rules.largest}, pow((SELECT titles FROM typical) / greatest(document_frequency, 1), {rules.exponent})))::FLOAT AS weight
                FROM {chosen}
                ORDER BY token_id
            ) TO '{quoted(str(path))}' (FORMAT parquet, COMPRESSION zstd)
            """
        )
        tokens, alive = connection.execute(f"SELECT count(*), count(*) FILTER (document_frequency > 0) FROM {chosen}").fetchall()[0]
        return TokenTable(
            tokens=tokens, kept=0 if compacted else kept, alive=alive, compacted=compacted,
            hot_hit_rate=_hit_rate(connection, chosen, rules.hot_share), sorted_hit_rate=_hit_rate(connection, "sorted", rules.hot_share),
        )  # fmt: skip


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


def _grow(connection: duckdb.DuckDBPyConnection, ancestor: Path) -> int:
    """Makes the table ``grown``: the ancestor's tokens under their ids, then those that are new; how many are the ancestor's."""
    connection.execute("CREATE TABLE known AS SELECT token_id, kind, token FROM read_parquet(?)", [parquet(ancestor)])
    known = connection.execute("SELECT count(*) FROM known").fetchall()[0][0]
    connection.execute(
        """
        CREATE TABLE grown AS
        SELECT token_id, kind, token, coalesce(term_frequency, 0) AS term_frequency, coalesce(document_frequency, 0) AS document_frequency
        FROM known
        LEFT JOIN counted USING (kind, token)
        UNION ALL
        SELECT $known + row_number() OVER (ORDER BY sorted.token_id) - 1, kind, token, term_frequency, document_frequency
        FROM sorted
        ANTI JOIN known USING (kind, token)
        """,
        {"known": known},
    )
    return known


def _hit_rate(connection: duckdb.DuckDBPyConnection, table: str, share: float) -> float:
    """Share of the occurrences that the first ``share`` of a table's rows serve; 1 for a table without any."""
    found = connection.execute(
        f"""
        SELECT sum(term_frequency) FILTER (token_id < (SELECT ceil(count(*) * $share) FROM {table})) / nullif(sum(term_frequency), 0)
        FROM {table}
        """,
        {"share": share},
    ).fetchall()[0][0]
    return 1.0 if found is None else float(found)
