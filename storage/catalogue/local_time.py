"""Provides SQL that converts the start of programmes from UTC to the local time of their channels.

``programmes.parquet`` has start and stop in UTC and an IANA ``zone``. DuckDB takes 7 µs to convert a time.
Therefore, the offset from UTC is computed once per zone and quarter of an hour in which programmes start. No
current zone changes its offset within a quarter of an hour.
"""

# Common table expression; the query must have the parameter $programmes, the path of programmes.parquet.
UTC_OFFSETS = """
    utc_offsets AS (
        SELECT zone, quarter, (quarter AT TIME ZONE 'UTC' AT TIME ZONE zone) - quarter AS utc_offset
        FROM (
            SELECT DISTINCT zone, time_bucket(INTERVAL 15 MINUTES, start) AS quarter
            FROM read_parquet($programmes)
        )
    )
"""
# Join of ``programmes`` with UTC_OFFSETS; start + utc_offset is then the local start.
JOIN_OFFSETS = """
    JOIN utc_offsets
      ON utc_offsets.zone = programmes.zone AND quarter = time_bucket(INTERVAL 15 MINUTES, start)
"""


def local_zone(feed_zone: str, home_zone: str) -> str:
    """Returns the time zone in which the local times of a feed's channels are computed.

    The result is ``feed_zone`` if it is an IANA name with a place, such as Europe/Paris. Otherwise, it is
    ``home_zone``, because an offset or abbreviation (+0100, CET) does not define daylight saving time.

    Args:
        feed_zone: Zone of the feed in the setting ``ingest.zones``.
        home_zone: Zone of the home.
    """
    return feed_zone if "/" in feed_zone else home_zone
