"""Groups the titles of programmes by show, in SQL.

Raw titles are the distinct titles of programmes in a guide. Raw titles that differ only in additions such as
"(New)" have the same show key and are variants of one show.
"""

from collections.abc import Sequence
from pathlib import Path

from storage.catalogue.connection import Connection, escape_glob


def write_raw_titles(connection: Connection, guide: Path, path: Path, group_rows: int) -> None:
    """Writes the distinct titles of the programmes of a guide to a Parquet file, in alphabetical order.

    The columns are raw_title, airings (count), first_airing and last_airing (microseconds since 1970, UTC),
    and language (most frequent code).

    Args:
        connection: Temporary database.
        guide: Folder with the Parquet files of a Guide.
        path: The file to write.
        group_rows: Rows per row group.
    """
    query = """
        SELECT title AS raw_title, sum(airings)::BIGINT AS airings,
               epoch_us(min(first)) AS first_airing, epoch_us(max(last)) AS last_airing,
               arg_min(code, (-airings, code)) FILTER (code IS NOT NULL) AS language
        FROM (
            SELECT title, title_language AS code, count(*) AS airings, min(start) AS first, max(start) AS last
            FROM read_parquet(?)
            WHERE title IS NOT NULL
            GROUP BY title, title_language
        )
        GROUP BY title
        ORDER BY title
    """
    titles = connection.sql(query, params=[escape_glob(guide / "programmes.parquet")])
    titles.write_parquet(str(path), compression="zstd", row_group_size=group_rows)


def write_shows(connection: Connection, parsed_files: Sequence[Path], shows: Path, variants: Path) -> None:
    """Groups raw titles by show key, and selects the title of each show.

    The title of a show is the raw title with the most airings. If several raw titles have the same number of
    airings, it is the shortest of them, and if several are equally long, the last in alphabetical order.

    Args:
        connection: Temporary database.
        parsed_files: Files that ``parse_piece`` has written, in the order of their raw titles.
        shows: Parquet file to write, with one row per show, sorted by show key: title, raw_title, show_key,
            family, language, airings, first_airing, last_airing, placeholder. Row i is title i.
        variants: Parquet file to write: raw_title and title_id, sorted by title_id, then raw_title.
    """
    files = [*map(escape_glob, parsed_files)]
    connection.execute("CREATE TABLE parsed_titles AS FROM read_parquet(?)", [files])
    connection.execute("""
        CREATE TABLE shows AS
        SELECT row_number() OVER (ORDER BY show_key) - 1 AS title_id, show_key,
               sum(airings)::BIGINT AS airings, min(first_airing) AS first_airing,
               max(last_airing) AS last_airing, bool_and(placeholder) AS placeholder
        FROM parsed_titles
        GROUP BY show_key
    """)
    connection.sql("""
        SELECT display AS title, raw_title, show_key, family, language,
               shows.airings, shows.first_airing, shows.last_airing, shows.placeholder
        FROM shows
        JOIN (
            SELECT show_key, display, raw_title, family, language
            FROM parsed_titles
            QUALIFY row_number() OVER (
                PARTITION BY show_key
                ORDER BY airings DESC, length(raw_title), raw_title DESC
            ) = 1
        ) USING (show_key)
        ORDER BY title_id
    """).write_parquet(str(shows), compression="zstd")
    connection.sql("""
        SELECT raw_title, title_id::INT AS title_id
        FROM parsed_titles
        JOIN shows USING (show_key)
        ORDER BY title_id, raw_title
    """).write_parquet(str(variants), compression="zstd")
