"""Local times of programmes: their start as the clock of their channel shows it.

``programmes.parquet`` has start and stop in UTC and an IANA ``zone``. DuckDB converts a time in 7 µs, so each
quarter of an hour is converted once: no zone of today changes its offset within one.
"""

# Common table expression, for a query with $programmes.
UTC_OFFSETS = """
    utc_offsets AS (
        SELECT zone, quarter, (quarter AT TIME ZONE 'UTC' AT TIME ZONE zone) - quarter AS utc_offset
        FROM (
            SELECT DISTINCT zone, time_bucket(INTERVAL 15 MINUTES, start) AS quarter
            FROM read_parquet($programmes)
        )
    )
"""
# Joined to programmes, makes start + utc_offset the local start.
JOIN_OFFSETS = """
    JOIN utc_offsets
      ON utc_offsets.zone = programmes.zone AND quarter = time_bucket(INTERVAL 15 MINUTES, start)
"""


def local_zone(feed_zone: str, home_zone: str) -> str:
    """The zone of a feed's channels: the feed's (``ingest.zones``) if it is that of a place, else the home's.

    A fixed offset or an abbreviation, such as +0100 or CET, says nothing about daylight saving.
    """
    return feed_zone if "/" in feed_zone else home_zone
