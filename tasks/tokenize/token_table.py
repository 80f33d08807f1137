"""Sums token counts, assigns token ids, and computes the training weights of tokens, in SQL.

Ids are assigned in descending order of document frequency (the number of training titles with the token), so
that the k most frequent tokens have the ids 0 to k - 1.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from storage.catalogue.connection import Connection, escape_glob

PART_ROWS = 4_000_000  # rows of counts that are summed at once; 22 million do not fit in 600 MB


@dataclass(frozen=True, kw_only=True)
class TokenRules:
    """Rules by which tokens are selected and their training weights are computed.

    The weight is (median document frequency / document frequency)^exponent, clipped to smallest and largest.

    Attributes:
        filtered_kinds: Kinds whose tokens must occur in ``minimum_titles`` training titles. Tokens of other
            kinds must occur in one training title.
        minimum_titles: Minimum number of training titles of a token of ``filtered_kinds``.
        exponent: Exponent of the weight; 0 for equal weights.
        smallest: Lower bound of the weight.
        largest: Upper bound of the weight.
    """

    filtered_kinds: Sequence[str]
    minimum_titles: int
    exponent: float
    smallest: float
    largest: float


def write_token_table(
    connection: Connection, count_files: Sequence[Path], rules: TokenRules, path: Path
) -> int:
    """Sums the counts of tokens, and writes the table of tokens. Returns the number of tokens.

    Args:
        connection: Temporary database.
        count_files: Parquet files with the columns kind, token, term_frequency and document_frequency. They
            count tokens in training titles, and each title is counted in one file. A token may be in several
            files, and its counts may be 0.
        rules: Rules that select tokens and compute weights.
        path: Parquet file to write: token_id, kind, token, term_frequency, document_frequency and weight. Row
            i is the token with the id i.
    """
    _sum_counts(connection, count_files, path.parent)
    query = """
        CREATE TABLE sorted AS
        SELECT row_number() OVER (ORDER BY document_frequency DESC, kind, token) - 1 AS token_id, *
        FROM counted
        WHERE document_frequency >= $minimum OR NOT list_contains($filtered_kinds, kind)
    """
    connection.execute(query, {"minimum": rules.minimum_titles, "filtered_kinds": list(rules.filtered_kinds)})
    weight = (
        f"greatest({rules.smallest}, least({rules.largest}, pow((SELECT median(document_frequency) FROM "
        f"sorted) / document_frequency, {rules.exponent})))"
    )
    connection.sql(f"""
        SELECT token_id, kind, token, term_frequency, document_frequency, {weight}::FLOAT AS weight
        FROM sorted
        ORDER BY token_id
    """).write_parquet(str(path), compression="zstd")
    return pq.read_metadata(path).num_rows


def _sum_counts(connection: Connection, count_files: Sequence[Path], folder: Path) -> None:
    """Creates the table ``counted`` with the summed counts of each token.

    If there are more than PART_ROWS rows of counts, they are first partitioned by hash, to limit memory.
    """
    columns = "kind VARCHAR, token VARCHAR, term_frequency BIGINT, document_frequency BIGINT"
    connection.execute(f"CREATE TABLE counted ({columns})")
    parts = -(-sum(pq.read_metadata(file).num_rows for file in count_files) // PART_ROWS)
    with tempfile.TemporaryDirectory(dir=folder, prefix="parts-") as name:
        file_groups = [count_files] * parts
        if parts > 1:
            query = """
                SELECT kind, token, term_frequency, document_frequency, hash(kind, token) % $parts AS part
                FROM read_parquet($counts)
            """
            parameters = {"parts": parts, "counts": [*map(escape_glob, count_files)]}
            partitions = connection.sql(query, params=parameters)
            partitions.write_parquet(name, compression="lz4", partition_by=["part"], overwrite=True)
            file_groups = [sorted(part.iterdir()) for part in sorted(Path(name).iterdir())]
        query = """
            INSERT INTO counted
            SELECT kind, token, sum(term_frequency), sum(document_frequency)
            FROM read_parquet(?, hive_partitioning = false)
            GROUP BY kind, token
            HAVING sum(document_frequency) > 0
        """
        for files in file_groups:
            connection.execute(query, [[*map(escape_glob, files)]])
