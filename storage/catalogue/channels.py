"""What a grab changes in what its source says of channels: a row of history a channel that is new, or described otherwise.

As with programmes (replacing.py) the order of reading changes nothing: a grab is compared with what was said before it was
made, and where one is read late, the next newer grab, which said again what its elders had said, says so.
"""

from __future__ import annotations

import duckdb

from storage.catalogue.replacing import Grab

_SAYS = """
    (arrived.name, arrived.names, arrived.icon, arrived.lcn, arrived.urls, arrived.extra)
    IS DISTINCT FROM (before.name, before.names, before.icon, before.lcn, before.urls, before.extra)
"""


def write_channel_history(connection: duckdb.DuckDBPyConnection, grab: Grab) -> None:
    """Compares the channels in ``arrived`` (of doubles the first counts), and those that are only used, with what was known."""
    values = {"feed_id": grab.feed_id, "source": grab.source, "at": grab.at}
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE before AS
        SELECT channel, name, names, icon, lcn, urls, extra
        FROM channel_history
        JOIN feeds USING (feed_id, source)
        WHERE source = $source AND grabbed_at <= $at
        QUALIFY row_number() OVER (PARTITION BY channel ORDER BY grabbed_at DESC, feed_id DESC) = 1
        """,
        {"source": grab.source, "at": grab.at},
    )
    connection.execute(
        f"""
        INSERT INTO channel_history
        SELECT $feed_id, $source, arrived.*
        FROM (FROM arrived QUALIFY row_number() OVER (PARTITION BY channel ORDER BY rowid) = 1) AS arrived
        LEFT JOIN before USING (channel)
        WHERE before.channel IS NULL OR {_SAYS}
        """,
        {"feed_id": grab.feed_id, "source": grab.source},
    )
    connection.execute(
        """
        INSERT INTO channel_history
        SELECT $feed_id, $source, channel, channel, [channel], NULL, NULL, [], NULL
        FROM windows
        WHERE feed_id = $feed_id
          AND channel NOT IN (SELECT channel FROM before)
          AND channel NOT IN (SELECT channel FROM arrived)
        """,
        {"feed_id": grab.feed_id, "source": grab.source},
    )
    if grab.known:
        _say_again(connection, values)
    connection.execute("DROP TABLE temp.before")


def _say_again(connection: duckdb.DuckDBPyConnection, values: dict[str, object]) -> None:
    """What a late grab describes otherwise, the first newer grab with programmes there had described as before; it has no row of its own for that."""
    connection.execute(
        """
        INSERT INTO channel_history
        SELECT newer.feed_id, $source, before.*
        FROM before
        JOIN (SELECT channel FROM channel_history WHERE feed_id = $feed_id) AS changed USING (channel)
        JOIN (
            SELECT channel, arg_min(feed_id, (grabbed_at, feed_id)) AS feed_id, min(grabbed_at) AS grabbed_at
            FROM windows
            JOIN feeds USING (feed_id)
            WHERE source = $source AND grabbed_at > $at
            GROUP BY channel
        ) AS newer USING (channel)
        WHERE before.names <> [channel]
          AND NOT EXISTS (
            FROM channel_history AS own
            JOIN feeds USING (feed_id, source)
            WHERE source = $source AND own.channel = before.channel AND feeds.grabbed_at > $at AND feeds.grabbed_at <= newer.grabbed_at
          )
        """,
        values,
    )
