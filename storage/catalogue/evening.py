"""Programmes of a Guide that start in an interval, read from its Parquet files without a lock."""

import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from storage.catalogue.connection import escape_glob, escape_quotes
from storage.catalogue.episode_columns import COLUMNS, EpisodeReader

DESCRIPTION_CHARACTERS = 300  # longer descriptions are truncated
_NO_DESCRIPTIONS = "(SELECT '' AS title, '' AS description, 0 AS airings LIMIT 0)"
# Formatted text instead of parameters: for parameters DuckDB imports pandas, 0.14 s of the 1 s of `tonight`.
_UPCOMING = """
    WITH upcoming AS (
        SELECT source, channel, start, stop, title, sub_title, categories,
               {numbers}
        FROM read_parquet('{programmes}')
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


def upcoming_programmes(guide: Path, begin: datetime.datetime, end: datetime.datetime) -> pa.Table:
    """Returns programmes that start in [``begin``, ``end``) (UTC, without a zone), sorted by start.

    Columns: start, stop, channel, channel_name, title, sub_title ("" if none), categories, the six columns of
    EpisodeNumber, days (number of days on which the title airs) and description (most frequent one of the
    title; "" if none).
    """
    names = "programmes", "channels", "descriptions"
    files = {name: escape_quotes(escape_glob(guide / f"{name}.parquet")) for name in names}
    has_texts = (guide / "descriptions.parquet").exists()  # not in guides of older versions
    texts = f"read_parquet('{files['descriptions']}')" if has_texts else _NO_DESCRIPTIONS
    numbers = COLUMNS
    if COLUMNS[0] not in pq.read_schema(guide / "programmes.parquet").names:  # guide of an older version
        numbers = "episode_numbers", "[NULL::VARCHAR FOR _ IN episode_numbers] AS episode_systems"
    values = files | {"descriptions": texts, "numbers": ", ".join(numbers)}
    query = _UPCOMING.format(**values, begin=begin, end=end, length=DESCRIPTION_CHARACTERS)
    with duckdb.connect() as connection:
        programmes = connection.sql(query).to_arrow_table()
    if numbers is not COLUMNS:
        for name, column in zip(COLUMNS, EpisodeReader().columns(programmes), strict=True):
            programmes = programmes.append_column(name, column)
    return programmes


def start_range(guide: Path) -> tuple[datetime.datetime, datetime.datetime] | None:
    """Returns the first and the last start in a Guide, UTC without a zone; None if it is empty."""
    with duckdb.connect() as connection:
        query = "SELECT min(start), max(start) FROM read_parquet(?)"
        first, last = connection.execute(query, [escape_glob(guide / "programmes.parquet")]).fetchall()[0]
    return None if first is None else (first, last)
