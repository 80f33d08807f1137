"""Frequencies of words per language, category and week, counted by DuckDB and published as Parquet.

Counts over training titles stand beside those over all titles but placeholders: what rose this week is mostly held out. A word that no
training title holds has no id and is not counted.
"""

from __future__ import annotations

from pathlib import Path

from storage.catalogue.bounded import bounded
from storage.catalogue.paths import parquet, quoted

_COUNTED = [  # a slice at a time: the groups of one are in memory
    f"""
    SELECT '{name}' AS slice,
           {value} AS value,
           token_id,
           coalesce(sum(times) FILTER (training), 0)::BIGINT AS term_frequency,
           count(*) FILTER (training) AS document_frequency,
           count(*) AS titles,
           {airings}::BIGINT AS airings
    FROM {rows}
    GROUP BY ALL
    """
    for name, value, airings, rows in (
        ("language", "language", "NULL", "held WHERE language IS NOT NULL"),
        ("category", "label", "NULL", "held JOIN labelled USING (title_id)"),
        ("week", "week", "sum(airings)", "held JOIN aired USING (title_id)"),
    )
]


def write_slices(guide: Path, vocabulary: Path, entries: Path, labels: Path, path: Path) -> int:
    """Writes frequencies.parquet.

    Args:
        guide: Folder of a Guide.
        vocabulary: Folder of a Vocabulary: titles.parquet, variants.parquet and tokens.parquet are read.
        entries: Parquet of title_id, token_id: one row an occurrence of a word in a title.
        labels: Parquet of title_id, label: the titles' categories.
        path: Where to write: slice (language, category, week), value, token_id, token, term_frequency and document_frequency (over
            training titles), titles (over all), airings (of all these titles in that week; null but for weeks). A week is its
            Monday, as text.

    Returns:
        Rows written.
    """
    with bounded(path.parent) as connection:
        connection.execute(
            """
            CREATE TABLE held AS
            SELECT title_id, token_id, count(*) AS times, any_value(split) = 'train' AS training, any_value(language) AS language
            FROM read_parquet($entries)
            JOIN (SELECT file_row_number::INTEGER AS title_id, language, split FROM read_parquet($titles, file_row_number = true)) USING (title_id)
            WHERE split <> 'placeholder'
            GROUP BY title_id, token_id
            """,
            {"entries": parquet(entries), "titles": parquet(vocabulary / "titles.parquet")},
        )
        connection.execute(
            """
            CREATE TABLE aired AS
            SELECT title_id, strftime(date_trunc('week', start), '%Y-%m-%d') AS week, count(*) AS airings
            FROM read_parquet($programmes)
            JOIN read_parquet($variants) ON raw_title = title
            GROUP BY ALL
            """,
            {"programmes": parquet(guide / "programmes.parquet"), "variants": parquet(vocabulary / "variants.parquet")},
        )
        connection.execute("CREATE TABLE labelled AS FROM read_parquet(?)", [parquet(labels)])
        connection.execute("CREATE TABLE counted AS " + " UNION ALL ".join(_COUNTED))
        connection.execute(
            """
            CREATE TABLE frequencies AS
            SELECT slice, value, token_id, token, counted.term_frequency, counted.document_frequency, titles, airings
            FROM counted
            JOIN read_parquet(?) USING (token_id)
            """,
            [parquet(vocabulary / "tokens.parquet")],
        )
        connection.execute(f"COPY (FROM frequencies ORDER BY slice, value, titles DESC, token) TO '{quoted(str(path))}' (FORMAT parquet, COMPRESSION zstd)")
        return int(connection.execute("SELECT count(*) FROM frequencies").fetchall()[0][0])
