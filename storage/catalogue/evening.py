"""Reads the programmes that start in an interval, such as an evening, from the Parquet files of a guide."""

import datetime
from collections.abc import Iterable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from storage.catalogue.connection import escape_glob, escape_quotes, present_columns
from storage.catalogue.episode_columns import EPISODE_COLUMNS, EpisodeReader

DESCRIPTION_CHARACTERS = 300  # longer descriptions are truncated
# Columns that guides of older versions lack, and their SQL types.
DETAIL_TYPES = {
    **dict.fromkeys(("is_new", "is_premiere", "previously_shown"), "BOOLEAN"),
    "ratings": "STRUCT(system VARCHAR, value VARCHAR)[]",
}
_NO_DESCRIPTIONS = "(SELECT '' AS title, '' AS description, 0 AS airings LIMIT 0)"
# Values are formatted into the queries, because DuckDB imports pandas for query parameters (0.14 s).
_UPCOMING_QUERY = """
    WITH upcoming AS (
        SELECT source, channel, start, stop, title, sub_title, categories,
               {numbers}, {details}, file_row_number AS row
        FROM read_parquet('{programmes}', file_row_number = true)
        WHERE start >= TIMESTAMP '{begin}' AND start < TIMESTAMP '{end}'
    ),
    names AS (
        SELECT source, channel, min(name) AS name
        FROM read_parquet('{channels}')
        GROUP BY source, channel
    ),
    shows AS (
        SELECT title, count(DISTINCT start::DATE) AS days
        FROM read_parquet('{programmes}')
        SEMI JOIN upcoming USING (title)
        GROUP BY title
    ),
    texts AS (
        SELECT title, left(arg_max(description, airings), {length}) AS description
        FROM {descriptions}
        SEMI JOIN upcoming USING (title)
        GROUP BY title
    )
    SELECT start, stop, channel, coalesce(name, channel) AS channel_name, title,
           coalesce(sub_title, '') AS sub_title,
           upcoming.* EXCLUDE (source, channel, start, stop, title, sub_title),
           days, coalesce(description, '') AS description
    FROM upcoming
    LEFT JOIN names USING (source, channel)
    JOIN shows USING (title)
    LEFT JOIN texts USING (title)
    ORDER BY start, channel_name, title, channel
"""
# Credits are a third of the bytes of a guide, so they are read only for the programmes that are displayed.
_CREDITS_QUERY = """
    SELECT file_row_number, credits, coalesce(icon, '')
    FROM read_parquet('{programmes}', file_row_number = true)
    WHERE file_row_number IN ({rows})
"""
_CREDITED_TITLES_QUERY = """
    SELECT title, credit.role AS role, credit.name AS name, count(*) AS airings
    FROM (SELECT title, unnest(credits) AS credit FROM read_parquet('{programmes}') WHERE credits IS NOT NULL)
    WHERE credit.name IN ({names})
    GROUP BY ALL
    ORDER BY airings DESC, title, role, name
"""


def upcoming_programmes(guide: Path, begin: datetime.datetime, end: datetime.datetime) -> pa.Table:
    """Returns the programmes that start in [``begin``, ``end``), sorted by start.

    Args:
        guide: Folder with the Parquet files of a Guide.
        begin: Start of the interval, a naive datetime in UTC.
        end: End of the interval (exclusive), a naive datetime in UTC.

    Returns:
        A table with the columns start, stop, channel, channel_name, title, sub_title ("" if none),
        categories, the six fields of EpisodeNumber, the columns of DETAIL_TYPES (NULL if an older version
        wrote the guide), row (index of the programme in programmes.parquet), days (number of days on which
        the title airs) and description (the most frequent description of the title; "" if none).
    """
    names = "programmes", "channels", "descriptions"
    files = {name: _quoted_path(guide, name) for name in names}
    has_descriptions = (guide / "descriptions.parquet").exists()  # not in guides of older versions
    description_source = f"read_parquet('{files['descriptions']}')" if has_descriptions else _NO_DESCRIPTIONS
    number_columns = EPISODE_COLUMNS
    if EPISODE_COLUMNS[0] not in pq.read_schema(guide / "programmes.parquet").names:  # of an older version
        number_columns = "episode_numbers", "[NULL::VARCHAR FOR _ IN episode_numbers] AS episode_systems"
    values = files | {"descriptions": description_source, "numbers": ", ".join(number_columns)}
    values["details"] = present_columns(guide / "programmes.parquet", DETAIL_TYPES)
    query = _UPCOMING_QUERY.format(**values, begin=begin, end=end, length=DESCRIPTION_CHARACTERS)
    with duckdb.connect() as connection:
        programmes = connection.sql(query).to_arrow_table()
    if number_columns is not EPISODE_COLUMNS:
        for name, column in zip(EPISODE_COLUMNS, EpisodeReader().columns(programmes), strict=True):
            programmes = programmes.append_column(name, column)
    return programmes


def _quoted_path(guide: Path, name: str) -> str:
    """Returns the path of the Parquet file ``name`` of a guide, escaped for ``read_parquet('…')`` in SQL."""
    return escape_quotes(escape_glob(guide / f"{name}.parquet"))


def has_details(guide: Path) -> bool:
    """Returns whether a guide has the columns of DETAIL_TYPES, which guides of older versions lack."""
    return DETAIL_TYPES.keys() <= set(pq.read_schema(guide / "programmes.parquet").names)


def read_credits(guide: Path, rows: Iterable[int]) -> dict[int, tuple[list[dict[str, str]], str]]:
    """Reads the credits and the icons of some programmes of a guide.

    Args:
        guide: Folder with the Parquet files of a Guide.
        rows: Indices of the programmes in programmes.parquet.

    Returns:
        A dictionary from the index of a programme to its credits (dictionaries with the keys "role" and
        "name") and the URL of its icon ("" if it has none). {} if an older version wrote the guide.
    """
    row_numbers = ", ".join(map(str, rows))
    if not row_numbers or not has_details(guide):
        return {}
    query = _CREDITS_QUERY.format(programmes=_quoted_path(guide, "programmes"), rows=row_numbers)
    with duckdb.connect() as connection:
        credit_rows = connection.execute(query).fetchall()
    return {row: (credits or [], icon) for row, credits, icon in credit_rows}


def credited_titles(guide: Path, names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Finds the titles of a guide in whose credits the names of some people occur.

    Returns:
        The distinct tuples (title as in the feed, role of the person, name of the person), those with the
        most airings first.
    """
    quoted_names = ", ".join(f"'{escape_quotes(name)}'" for name in sorted(set(names)))
    if not quoted_names or not has_details(guide):
        return []
    query = _CREDITED_TITLES_QUERY.format(names=quoted_names, programmes=_quoted_path(guide, "programmes"))
    with duckdb.connect() as connection:
        return [(title, role, name) for title, role, name, _ in connection.execute(query).fetchall()]


def start_range(guide: Path) -> tuple[datetime.datetime, datetime.datetime] | None:
    """Returns the earliest and the latest start of all programmes of a guide, as naive datetimes in UTC.

    Returns None if the guide is empty.
    """
    with duckdb.connect() as connection:
        query = "SELECT min(start), max(start) FROM read_parquet(?)"
        first, last = connection.execute(query, [escape_glob(guide / "programmes.parquet")]).fetchall()[0]
    return None if first is None else (first, last)
