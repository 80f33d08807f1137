"""Raw titles to shows: grouped by show key, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from storage.catalogue.bounded import bounded
from storage.catalogue.paths import parquet


def write_raw_titles(guide: Path, path: Path, group_rows: int) -> None:
    """Writes the distinct raw titles of a Guide, sorted, in row groups.

    Columns: raw_title, airings, first_airing and last_airing (microseconds since 1970, UTC), language (the commonest code).

    Args:
        guide: Folder of a Guide.
        path: Where to write.
        group_rows: Titles a row group.
    """
    with bounded(path.parent) as connection:
        connection.sql(
            """
            SELECT title AS raw_title,
                   sum(airings)::BIGINT AS airings,
                   epoch_us(min(first)) AS first_airing,
                   epoch_us(max(last)) AS last_airing,
                   arg_min(title_language, (-airings, title_language)) FILTER (title_language IS NOT NULL) AS language
            FROM (
                SELECT title, title_language, count(*) AS airings, min(start) AS first, max(start) AS last
                FROM read_parquet($programmes)
                WHERE title IS NOT NULL
                GROUP BY title, title_language
            )
            GROUP BY title
            ORDER BY title
            """,
            params={"programmes": parquet(guide / "programmes.parquet")},
        ).write_parquet(str(path), compression="zstd", row_group_size=group_rows)


def write_shows(parsed: Sequence[Path], shows: Path, variants: Path) -> None:
    """Groups raw titles by show key; of its forms a show takes the most aired, then the shorter, then the later in the alphabet.

    Args:
        parsed: Files of raw titles with display, show_key, family and placeholder, sorted by raw title over all of them.
        shows: Where to write a row a show, sorted by show key: title, raw_title, show_key, family, language, airings, first_airing,
            last_airing, placeholder. Row i is title i.
        variants: Where to write raw_title, title_id, sorted by title_id and raw title.
    """
    with bounded(shows.parent) as connection:
        connection.execute("CREATE TABLE parsed AS SELECT * FROM read_parquet(?)", [[parquet(file) for file in parsed]])
        connection.execute(
            """
            CREATE TABLE shows AS
            SELECT row_number() OVER (ORDER BY show_key) - 1 AS title_id, *
            FROM (
                SELECT show_key,
                       sum(airings)::BIGINT AS airings,
                       min(first_airing) AS first_airing,
                       max(last_airing) AS last_airing,
                       bool_and(placeholder) AS placeholder
                FROM parsed
                GROUP BY show_key
            )
            """
        )
        connection.sql(
            """
            SELECT display AS title, raw_title, show_key, family, language, shows.airings, shows.first_airing, shows.last_airing, shows.placeholder
            FROM shows
            JOIN (
                SELECT show_key, display, raw_title, family, language
                FROM parsed
                QUALIFY row_number() OVER (PARTITION BY show_key ORDER BY airings DESC, length(raw_title), raw_title DESC) = 1
            ) USING (show_key)
            ORDER BY title_id
            """
        ).write_parquet(str(shows), compression="zstd")
        connection.sql(
            """
            SELECT raw_title, title_id::INT AS title_id
            FROM parsed
            JOIN shows USING (show_key)
            ORDER BY title_id, raw_title
            """
        ).write_parquet(str(variants), compression="zstd")
