"""Counts how often words occur in titles per language, category and week, in SQL."""

from pathlib import Path

import pyarrow.parquet as pq

from storage.catalogue.connection import Connection, escape_glob

# A slice counts words per language, per category or per week. The columns are the name of the slice, its
# column of values, the number of airings, and the FROM clause. Slices are counted one after the other,
# because DuckDB has the groups of a slice in memory.
_SLICES = (
    ("language", "language", "NULL", "occurrences WHERE language IS NOT NULL"),
    ("category", "label", "NULL", "occurrences JOIN labels USING (title_id)"),
    ("week", "week", "sum(airings)", "occurrences JOIN weekly_airings USING (title_id)"),
)
_COUNTS = """
    SELECT '{}' AS slice, {} AS value, token_id,
           coalesce(sum(times) FILTER (training), 0)::BIGINT AS term_frequency,
           count(*) FILTER (training) AS document_frequency, count(*) AS titles, {}::BIGINT AS airings
    FROM {}
    GROUP BY ALL
"""


def write_slices(
    connection: Connection, guide: Path, vocabulary: Path, entries: Path, labels: Path, path: Path
) -> int:
    """Counts words per language, category and week. Returns the number of rows of the written file.

    Words without a token id are not counted.

    Args:
        connection: Temporary database.
        guide: Folder of a Guide, with programmes.parquet.
        vocabulary: Folder of a Vocabulary, with titles.parquet, variants.parquet and tokens.parquet.
        entries: Parquet file with title_id and token_id, one row per occurrence of a word in a title.
        labels: Parquet file with title_id and label, the categories of titles.
        path: Parquet file to write. Its columns are slice ("language", "category" or "week"), value (for a
            week, its Monday as text), token_id, token, term_frequency and document_frequency (in training
            titles), titles (number of titles in all sets, without placeholders) and airings (number of
            airings of these titles in the week; null for other slices).
    """
    query = """
        CREATE TABLE occurrences AS
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
        CREATE TABLE weekly_airings AS
        SELECT title_id, strftime(date_trunc('week', start), '%Y-%m-%d') AS week, count(*) AS airings
        FROM read_parquet(?)
        JOIN read_parquet(?) ON raw_title = title
        GROUP BY ALL
    """
    files = guide / "programmes.parquet", vocabulary / "variants.parquet"
    connection.execute(query, [*map(escape_glob, files)])
    connection.execute("CREATE TABLE labels AS FROM read_parquet(?)", [escape_glob(labels)])
    counts = " UNION ALL ".join(_COUNTS.format(*columns) for columns in _SLICES)
    connection.execute(f"CREATE TABLE counts AS {counts}")
    query = """
        SELECT slice, value, token_id, token, c.term_frequency, c.document_frequency, titles, airings
        FROM counts AS c
        JOIN read_parquet(?) USING (token_id)
        ORDER BY slice, value, titles DESC, token
    """
    frequencies = connection.sql(query, params=[escape_glob(vocabulary / "tokens.parquet")])
    frequencies.write_parquet(str(path), compression="zstd")
    return pq.read_metadata(path).num_rows
