"""Sources that get another name: URLs once stored with secrets, or now given by a reference."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from storage.catalogue.connection import Catalogue, allow_memory

TABLES = ("feeds", "programmes", "channel_history")
ROW = 200  # bytes that DuckDB needs for a programme that it renames, about


def known_sources(catalogue: Catalogue) -> list[str]:
    """The sources that were ever read, in the order in which they were first read."""
    return [
        row[0]
        for row in catalogue.connection.execute(
            "SELECT source FROM feeds GROUP BY source ORDER BY min(feed_id)"
        ).fetchall()
    ]


def rename_sources(catalogue: Catalogue, names: Mapping[str, str]) -> None:
    """Renames sources, all or none.

    Several may become one: then what an older grab said is replaced by the next one that spoke of that time.

    Args:
        names: The new name of each; none of the new ones is in the catalogue.
    """
    connection = catalogue.connection
    count = connection.execute(
        "SELECT count(*) FROM programmes WHERE list_contains($old, source)", {"old": list(names)}
    ).fetchall()[0][0]
    allow_memory(connection, count * ROW)
    connection.begin()
    try:
        for old, new in names.items():
            for table in TABLES:
                connection.execute(
                    f"UPDATE {table} SET source = $new WHERE source = $old", {"old": old, "new": new}
                )
            connection.execute("DELETE FROM validators WHERE source = $old", {"old": old})
        for new in set(names.values()):
            if sum(new == each for each in names.values()) > 1:
                _replace_older(connection, new)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    finally:
        allow_memory(connection, 0)


def _replace_older(connection: duckdb.DuckDBPyConnection, source: str) -> None:
    """What holds of grabs that were of several sources, as if they had been of one from the start."""
    connection.execute(
        """
        UPDATE programmes SET replaced_by = following.feed_id
        FROM (
            SELECT programme_id, arg_min(newer.feed_id, (newer.grabbed_at, newer.feed_id)) AS feed_id
            FROM programmes
            JOIN feeds AS said ON said.feed_id = programmes.feed_id
            JOIN windows
              ON windows.channel = programmes.channel
             AND programmes.start >= windows.begins
             AND programmes.start < windows.ends
            JOIN feeds AS newer ON newer.feed_id = windows.feed_id AND newer.source = programmes.source
            WHERE programmes.source = $source
              AND (newer.grabbed_at, newer.feed_id) > (said.grabbed_at, said.feed_id)
            GROUP BY programme_id
        ) AS following
        WHERE following.programme_id = programmes.programme_id
          AND programmes.replaced_by IS NULL
        """,
        {"source": source},
    )
