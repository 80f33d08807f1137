"""Computes statistics per feed and day from the Parquet files of a guide, to detect gaps and outages."""

import tempfile
from pathlib import Path
from typing import Any

from storage.catalogue.connection import escape_glob, temporary_database

_FEED_DAYS_QUERY = """
    WITH airings AS (
        SELECT *, start::DATE AS day,
               lead(start) OVER (PARTITION BY source, channel ORDER BY start, title) AS next,
               min(start::DATE) OVER (PARTITION BY source, title) AS first_day,
               min(start::DATE) OVER (PARTITION BY source) AS source_day
        FROM read_parquet($programmes)
    ),
    languages AS (
        SELECT source, day, list(language || ' ' || airings ORDER BY airings DESC, language)[1:4] AS languages
        FROM (
            SELECT source, day, coalesce(title_language, '?') AS language, count(*) AS airings
            FROM airings
            GROUP BY ALL
        )
        GROUP BY source, day
    )
    SELECT source, day, count(*) AS programmes, count(DISTINCT channel) AS channels,
           avg((len(categories) > 0)::INTEGER) AS category_share,
           count(*) FILTER (WHERE next > stop + INTERVAL 5 MINUTE) AS gaps,
           count(*) FILTER (WHERE next < stop) AS overlaps,
           count(DISTINCT title) FILTER (WHERE first_day = day AND day > source_day) AS new_titles,
           any_value(array_to_string(languages, ', ')) AS languages
    FROM airings
    JOIN languages USING (source, day)
    GROUP BY source, day
    ORDER BY source, day
"""
_SILENT_CHANNELS_QUERY = """
    WITH airings AS (SELECT DISTINCT source, channel, start::DATE AS day FROM read_parquet($programmes)),
    days AS (
        SELECT source, day, channels,
               coalesce(avg(channels) OVER week, 0) AS usual_channels,
               max(day) OVER (PARTITION BY source) AS last_day
        FROM (SELECT source, day, count(*) AS channels FROM airings GROUP BY source, day)
        WINDOW week AS (
            PARTITION BY source
            ORDER BY day
            RANGE BETWEEN INTERVAL 7 DAY PRECEDING AND INTERVAL 1 DAY PRECEDING
        )
    )
    SELECT source, days.day, previous.channel, count(*) AS days_before
    FROM days
    JOIN airings AS previous USING (source)
    WHERE previous.day < days.day AND previous.day >= days.day - INTERVAL 7 DAY
      AND channels >= usual_channels / 2 AND days.day < last_day
      AND (source, previous.channel, days.day) NOT IN (SELECT (source, channel, day) FROM airings)
    GROUP BY ALL
    HAVING count(*) >= $min_days AND max(previous.day) = days.day - INTERVAL 1 DAY
    ORDER BY ALL
"""


def feed_days(guide: Path) -> list[dict[str, Any]]:
    """Returns the statistics of a guide as one dictionary per source (name of a feed) and day (UTC).

    Args:
        guide: Folder with the Parquet files of a Guide.

    Returns:
        Dictionaries with these keys: source; day; programmes and channels (their numbers); category_share
        (share of the programmes that have a category, 0 to 1); gaps (number of pauses of more than five
        minutes between programmes of a channel); overlaps (number of programmes that end after the start of
        the next programme on the channel); new_titles (number of titles that air for the first time; 0 on
        the first day of a source); languages (the three most frequent language codes of titles with their
        numbers of airings, such as "de 812, en 40").
    """
    return _query_guide(_FEED_DAYS_QUERY, guide)


def silent_channels(guide: Path, min_days: int) -> list[dict[str, Any]]:
    """Finds days on which a channel has no programmes although it usually has some.

    A channel usually has programmes if it has some on the previous day and on at least ``min_days`` of the
    previous seven days. Two kinds of days are skipped: days on which more than half of the usual channels of
    a source are missing, and the last day of a source, because the guide ends during this day.

    Args:
        guide: Folder with the Parquet files of a Guide.
        min_days: Minimum number of days with programmes in the previous week, 1 to 7.

    Returns:
        Dictionaries with the keys source, day, channel and days_before (number of days with programmes in
        the previous week).
    """
    return _query_guide(_SILENT_CHANNELS_QUERY, guide, min_days=min_days)


def _query_guide(query: str, guide: Path, **parameters: object) -> list[dict[str, Any]]:
    """Runs a query on programmes.parquet of a guide; returns one dictionary per row."""
    parameters["programmes"] = escape_glob(guide / "programmes.parquet")
    with temporary_database(Path(tempfile.gettempdir())) as connection:
        return connection.sql(query, params=parameters).to_arrow_table().to_pylist()
