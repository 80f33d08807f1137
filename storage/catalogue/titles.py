"""What a Guide snapshot says of titles: who airs when, under which categories. Reads published Parquet, never the writer's file."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa


def raw_titles(guide: Path) -> pa.Table:
    """Distinct raw titles.

    Args:
        guide: Folder of a Guide.

    Returns:
        raw_title, airings, first_airing and last_airing (microseconds since 1970, UTC), language (the commonest code).
        Sorted by raw_title.
    """
    with duckdb.connect() as connection:
        return connection.sql(
            """
            SELECT title AS raw_title,
                   count(*) AS airings,
                   epoch_us(min(start)) AS first_airing,
                   epoch_us(max(start)) AS last_airing,
                   mode(title_language ORDER BY title_language) AS language
            FROM read_parquet($programmes)
            WHERE title IS NOT NULL
            GROUP BY title
            ORDER BY title
            """,
            params={"programmes": str(guide / "programmes.parquet")},
        ).to_arrow_table()


def title_categories(guide: Path, variants: pa.Table) -> pa.Table:
    """Raw categories of each title, by feed.

    Args:
        guide: Folder of a Guide.
        variants: raw_title, title_id.

    Returns:
        source, category, title_id; distinct and sorted.
    """
    with duckdb.connect() as connection:
        connection.register("variants", variants)
        return connection.sql(
            """
            SELECT DISTINCT source, category, title_id
            FROM (
                SELECT source, title, unnest(categories) AS category
                FROM read_parquet($programmes)
            )
            JOIN variants ON raw_title = title
            WHERE category IS NOT NULL
            ORDER BY source, category, title_id
            """,
            params={"programmes": str(guide / "programmes.parquet")},
        ).to_arrow_table()


def titles_by_source(guide: Path, variants: pa.Table) -> dict[str, int]:
    """Number of distinct titles a feed airs, placeholders included."""
    with duckdb.connect() as connection:
        connection.register("variants", variants)
        rows = connection.sql(
            """
            SELECT source, count(DISTINCT title_id)
            FROM read_parquet($programmes)
            JOIN variants ON raw_title = title
            GROUP BY source
            """,
            params={"programmes": str(guide / "programmes.parquet")},
        ).fetchall()
    return dict(rows)


def title_channels(guide: Path, variants: pa.Table, limit: int = 12) -> pa.Table:
    """Display names of the channels that air each title, most airings first.

    Returns:
        title_id, channels (list of at most ``limit`` names); sorted by title_id.
    """
    with duckdb.connect() as connection:
        connection.register("variants", variants)
        return connection.sql(
            """
            WITH names AS (
                SELECT source, channel, min(name) AS name
                FROM read_parquet($channels)
                GROUP BY source, channel
            ),
            counted AS (
                SELECT title_id, coalesce(names.name, programmes.channel) AS name, count(*) AS airings
                FROM read_parquet($programmes) AS programmes
                JOIN variants ON raw_title = title
                LEFT JOIN names USING (source, channel)
                GROUP BY ALL
            )
            SELECT title_id, list(name ORDER BY airings DESC, name)[1:$limit] AS channels
            FROM counted
            GROUP BY title_id
            ORDER BY title_id
            """,
            params={"programmes": str(guide / "programmes.parquet"), "channels": str(guide / "channels.parquet"), "limit": limit},
        ).to_arrow_table()
