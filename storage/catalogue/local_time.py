"""SQL that converts the start of programmes to the local time of their channel.

``programmes.parquet`` has start and stop in UTC and an IANA ``zone``. DuckDB takes 7 µs per conversion, so
each quarter of an hour is converted once. No current zone changes its offset within a quarter.
"""

# Common table expression for a query with the parameter $programmes.
UTC_OFFSETS = """
    utc_offsets AS (
        SELECT zone, quarter, (quarter AT TIME ZONE 'UTC' AT TIME ZONE zone) - quarter AS utc_offset
        FROM (
            SELECT DISTINCT zone, time_bucket(INTERVAL 15 MINUTES, start) AS quarter
            FROM read_parquet($programmes)
        )
    )
"""
# Joined to programmes; start + utc_offset is then the local start.
JOIN_OFFSETS = """
    JOIN utc_offsets
      ON utc_offsets.zone = programmes.zone AND quarter = time_bucket(INTERVAL 15 MINUTES, start)
"""


def local_zone(feed_zone: str, home_zone: str) -> str:
    """Returns the time zone of a feed's channels.

    This is the feed's zone (``ingest.zones``) if it is an IANA name with a place, else the home's zone. A
    fixed offset or an abbreviation, such as +0100 or CET, does not define daylight saving time.
    """
    return feed_zone if "/" in feed_zone else home_zone
