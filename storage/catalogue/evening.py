"""The programmes of a Guide that begin within some hours, from its published Parquet: no lock is held."""

import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from storage.catalogue.connection import parquet, quoted
from storage.catalogue.episode_columns import COLUMNS, EpisodeReader

LENGTH = 300  # characters of a description
_NO_DESCRIPTIONS = "(SELECT '' AS title, '' AS description, 0 AS airings LIMIT 0)"
# Values are written into it: DuckDB imports pandas for a query with parameters, 0.14 s of a viewer's second.
_COMING = """
    WITH coming AS (
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
        SEMI JOIN coming USING (title)
        GROUP BY title
    ),
    texts AS (
        SELECT title, left(arg_max(description, airings), {length}) AS description
        FROM {descriptions}
        SEMI JOIN coming USING (title)
        GROUP BY title
    )
    SELECT start, stop, channel, coalesce(name, channel) AS channel_name, title,
           coalesce(sub_title, '') AS sub_title,
           coming.* EXCLUDE (source, channel, start, stop, title, sub_title),
           days, coalesce(description, '') AS description
    FROM coming
    LEFT JOIN names USING (source, channel)
    JOIN shows USING (title)
    LEFT JOIN texts USING (title)
    ORDER BY start, channel_name, title, channel
"""


def coming_programmes(guide: Path, begin: datetime.datetime, end: datetime.datetime) -> pa.Table:
    """Programmes that start from ``begin`` to before ``end`` (UTC, without a zone), the first first: start,
    stop, channel, channel_name, title, sub_title (or ""), categories, season to parts, days (distinct ones
    on which the guide has the title) and description (the title's most frequent one, or "").
    """
    names = "programmes", "channels", "descriptions"
    files = {name: quoted(parquet(guide / f"{name}.parquet")) for name in names}
    has_texts = (guide / "descriptions.parquet").exists()  # an older version wrote none
    texts = f"read_parquet('{files['descriptions']}')" if has_texts else _NO_DESCRIPTIONS
    numbers = COLUMNS
    if COLUMNS[0] not in pq.read_schema(guide / "programmes.parquet").names:  # an older version's
        numbers = "episode_numbers", "[NULL::VARCHAR FOR _ IN episode_numbers] AS episode_systems"
    values = files | {"descriptions": texts, "numbers": ", ".join(numbers)}
    query = _COMING.format(**values, begin=begin, end=end, length=LENGTH)
    with duckdb.connect() as connection:
        coming = connection.sql(query).to_arrow_table()
    if numbers is not COLUMNS:
        for name, column in zip(COLUMNS, EpisodeReader().columns(coming), strict=True):
            coming = coming.append_column(name, column)
    return coming


def span(guide: Path) -> tuple[datetime.datetime, datetime.datetime] | None:
    """The first and the last start in a Guide, UTC without a zone; None where it is empty."""
    with duckdb.connect() as connection:
        query = "SELECT min(start), max(start) FROM read_parquet(?)"
        first, last = connection.execute(query, [parquet(guide / "programmes.parquet")]).fetchall()[0]
    return None if first is None else (first, last)
