"""Replaces programmes of earlier versions of a feed by those of a new version.

A *grab* is the content of a feed at an instant. It covers one *window* per channel: from the first start on
the channel to the end of the last programme. Within the window, programmes of an older grab are replaced
unless the new grab repeats them word for word. Programmes outside of the window do not change, with one
exception: running programmes.

A programme is *running* if it begins before the window and ends in it. Guides often omit the running
programme, so it may still air although the new grab lacks it. It is *displaced*, and therefore replaced, if
the new grab has another programme that starts before the end of the running programme and that

- has the title of the running programme (which was rescheduled), or overlaps more than a quarter of the
  running programme (which was cancelled, not just cut short), and
- was not in the older grab, too. (Some feeds list the parts of a programme in addition to the programme.)

Nothing is deleted: the column ``replaced_by`` of a programme has the id of the grab that replaced it. Grabs
are ordered by their instant, then by the order of import. An old guide that is imported late
therefore replaces nothing newer.
"""

import datetime
from typing import Any, NamedTuple

import duckdb

PROGRAMME_TABLES = ("programmes", "details", "originals")
# A programme is repeated word for word if its channel, start, title and these columns are equal.
CORE_COLUMNS = (
    "programmes.stop, programmes.stop_note, title_language, sub_title, categories, episode_numbers, "
    "episode_systems, date, extra"
)
DETAIL_COLUMNS = (
    "description, translations, keywords, credits, is_new, is_premiere, is_live, previously_shown, "
    "previously_shown_at, star_ratings, ratings, length_minutes, language, original_language, countries, "
    "icon, urls"
)
# SQL expression: the number of columns of a programme that are not empty.
_FILLED_COLUMN_COUNT = " + ".join(
    f"coalesce({name}::VARCHAR NOT IN ('[]', 'false'), false)::INTEGER"
    for name in f"{CORE_COLUMNS}, {DETAIL_COLUMNS}".split(", ")
    if "stop" not in name
)
# SQL condition: programme ``later`` displaces programme ``running`` unless the older grab also has ``later``.
_DISPLACEMENT = """
    later.channel = running.channel AND later.start > running.start AND later.start < running.stop
    AND (later.title = running.title OR later.start < running.stop - (running.stop - running.start) / 4)
"""
# SQL condition: the stop of a programme is plausible or was inferred.
_STOP_CONDITION = "coalesce({}.stop_note, 'missing') IN ('missing', 'unreadable')"
_NEWER_WINDOWS_QUERY = """
    CREATE OR REPLACE TEMP TABLE newer AS
    SELECT windows.feed_id, channel, begins, ends, grabbed_at
    FROM windows
    JOIN feeds USING (feed_id)
    WHERE source = $source AND ($at::TIMESTAMP IS NULL OR grabbed_at > $at)
"""
# For each programme of the relation {programmes}, selects the first grab in ``newer`` that replaces it.
_FIRST_NEWER_QUERY = f"""
    WITH running AS (FROM {{programmes}})
    SELECT programme_id, arg_min(feed_id, (grabbed_at, feed_id)) AS feed_id
    FROM (
        SELECT running.programme_id, newer.feed_id, newer.grabbed_at
        FROM running
        JOIN newer ON newer.channel = running.channel AND start >= begins AND start < ends
         AND (newer.grabbed_at, newer.feed_id) > (running.grabbed_at, running.feed_id)
        UNION ALL
        SELECT running.programme_id, newer.feed_id, newer.grabbed_at
        FROM running
        JOIN newer ON newer.channel = running.channel AND running.start < begins AND running.stop > begins
         AND (newer.grabbed_at, newer.feed_id) > (running.grabbed_at, running.feed_id)
        JOIN programmes AS later ON later.feed_id = newer.feed_id AND {_DISPLACEMENT}
        LEFT JOIN running AS concurrent
          ON (concurrent.feed_id, concurrent.channel, concurrent.start, concurrent.title)
           = (running.feed_id, later.channel, later.start, later.title)
        WHERE concurrent.programme_id IS NULL AND {_STOP_CONDITION.format("running")}
    )
    GROUP BY programme_id
"""
DUPLICATE_SEARCH_ROWS = 500_000  # programmes per search for duplicates; a search of 3 million takes 130 MB


class Grab(NamedTuple):
    """One version of a feed, which is being imported into the catalogue."""

    feed_id: int  # id of this import, in the table ``feeds``
    source: str  # name of the feed
    content_digest: str  # SHA-256 of the content
    # Instant of the guide: time of the import, or date of a dated guide; a naive datetime in UTC.
    grabbed_at: datetime.datetime
    is_update: bool  # whether the feed was imported before; if so, new programmes are in tables ``staged_*``

    @property
    def prefix(self) -> str:
        """Returns the prefix of the names of the tables to which the programmes are written."""
        return "staged_" if self.is_update else ""


def drop_duplicates(connection: duckdb.DuckDBPyConnection, grab: Grab, row_count: int) -> int:
    """Deletes all but one programme of each group with the same channel, start and title.

    Of a group, programmes with a plausible stop are preferred, then those with the most values, then the
    first in the feed.

    Args:
        connection: Connection to the catalogue.
        grab: Version of the feed that is being imported.
        row_count: Number of programmes of this import.

    Returns:
        Number of deleted programmes.
    """
    table, part_count = f"{grab.prefix}programmes", 1 + row_count // DUPLICATE_SEARCH_ROWS
    query = f"""
        SELECT count(DISTINCT key)
        FROM (SELECT hash(channel, start, title) AS key FROM {table} WHERE feed_id = $feed_id)
        WHERE key % $part_count = $part
    """
    distinct_count = 0
    for part in range(part_count):
        parameters = {"feed_id": grab.feed_id, "part_count": part_count, "part": part}
        distinct_count += connection.execute(query, parameters).fetchall()[0][0]
    if distinct_count == row_count:
        return 0
    query = f"""
        CREATE OR REPLACE TEMP TABLE duplicates AS
        WITH candidates AS (
            SELECT programme_id
            FROM {table}
            WHERE feed_id = $feed_id
            QUALIFY count(*) OVER (PARTITION BY channel, start, title) > 1
        )
        SELECT programme_id
        FROM candidates
        JOIN {table} AS programmes USING (programme_id)
        LEFT JOIN {grab.prefix}details USING (programme_id)
        QUALIFY row_number() OVER (
            PARTITION BY channel, start, title
            ORDER BY stop_note IS NOT NULL, {_FILLED_COLUMN_COUNT} DESC, programme_id
        ) > 1
    """
    connection.execute(query, {"feed_id": grab.feed_id})
    return _delete_programmes(connection, grab, "duplicates")


def write_windows(connection: duckdb.DuckDBPyConnection, grab: Grab) -> None:
    """Stores the windows of a grab (version of a feed): the interval that it covers on each channel.

    Implausible stop times do not extend a window. If the same content was imported before with another time
    zone, the windows are extended to cover the windows of that import, so that its programmes are replaced.
    """
    query = f"""
        INSERT INTO windows
        SELECT $feed_id, channel, min(begins), max(ends)
        FROM (
            SELECT channel, min(start) AS begins,
                   greatest(max(start) + to_microseconds(1), max(stop) FILTER (stop_note IS NULL)) AS ends
            FROM {grab.prefix}programmes
            WHERE feed_id = $feed_id
            GROUP BY channel
            UNION ALL
            SELECT channel, begins, ends
            FROM windows
            JOIN feeds USING (feed_id)
            WHERE source = $source AND content_digest = $content_digest
        )
        GROUP BY channel
    """
    parameters = {"feed_id": grab.feed_id, "source": grab.source, "content_digest": grab.content_digest}
    connection.execute(query, parameters)


def replace_programmes(connection: duckdb.DuckDBPyConnection, grab: Grab) -> int:
    """Moves new programmes from the temporary tables to the catalogue, and marks the programmes they replace.

    Returns:
        Number of programmes that were not moved, because they repeat a stored programme word for word.
    """
    feed_values, source_values = {"feed_id": grab.feed_id}, {"source": grab.source, "at": grab.grabbed_at}
    _find_affected(connection, feed_values | source_values)
    has_newer_grab = connection.execute(_NEWER_WINDOWS_QUERY, source_values).fetchall()[0][0] > 0
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE repeated AS
        SELECT min(programmes.programme_id) AS programme_id, affected.programme_id AS stored_id
        FROM staged_programmes AS programmes
        LEFT JOIN staged_details USING (programme_id)
        JOIN affected USING (channel, start, title)
        WHERE affected.core = hash({CORE_COLUMNS}) AND affected.detail = hash({DETAIL_COLUMNS})
        GROUP BY affected.programme_id
    """)
    connection.execute("DELETE FROM affected WHERE programme_id IN (SELECT stored_id FROM repeated)")
    if has_newer_grab:
        _restore_repeated(connection)
    query = """
        UPDATE programmes SET replaced_by = $feed_id
        WHERE programme_id IN (SELECT programme_id FROM affected)
    """
    connection.execute(query, feed_values)
    repetition_count = _delete_programmes(connection, grab, "repeated")
    if has_newer_grab:
        staged_source = "(SELECT *, $at::TIMESTAMP AS grabbed_at FROM staged_programmes)"
        query = f"""
            UPDATE staged_programmes AS staged SET replaced_by = first_newer.feed_id
            FROM ({_FIRST_NEWER_QUERY.format(programmes=staged_source)}) AS first_newer
            WHERE first_newer.programme_id = staged.programme_id
        """
        connection.execute(query, {"at": grab.grabbed_at})
    for table in PROGRAMME_TABLES:
        connection.execute(f"INSERT INTO {table} FROM staged_{table}")
    return repetition_count


def _find_affected(connection: duckdb.DuckDBPyConnection, parameters: dict[str, Any]) -> None:
    """Creates the table ``affected``: programmes that were current before a grab and that it may replace."""
    has_stop = _STOP_CONDITION.format("programmes")
    query = f"""
        CREATE OR REPLACE TEMP TABLE affected AS
        SELECT programmes.programme_id, programmes.channel, programmes.start, programmes.stop, title,
               replaced_by, hash({CORE_COLUMNS}) AS core, hash({DETAIL_COLUMNS}) AS detail,
               programmes.start < begins AS is_running
        FROM programmes
        JOIN windows ON windows.feed_id = $feed_id AND windows.channel = programmes.channel
         AND programmes.start < ends
         AND (programmes.start >= begins OR (programmes.stop > begins AND {has_stop}))
        JOIN feeds AS introduced ON introduced.feed_id = programmes.feed_id
        LEFT JOIN feeds AS superseded ON superseded.feed_id = programmes.replaced_by
        LEFT JOIN details USING (programme_id)
        WHERE programmes.source = $source AND introduced.grabbed_at <= $at
          AND (superseded.feed_id IS NULL OR superseded.grabbed_at > $at)
    """
    connection.execute(query, parameters)
    connection.execute(f"""
        DELETE FROM affected
        WHERE is_running AND programme_id NOT IN (
            SELECT running.programme_id
            FROM affected AS running
            JOIN staged_programmes AS later ON {_DISPLACEMENT}
            LEFT JOIN affected AS concurrent
              ON (concurrent.channel, concurrent.start, concurrent.title)
               = (later.channel, later.start, later.title)
            WHERE running.is_running AND concurrent.programme_id IS NULL
        )
    """)


def replace_older(connection: duckdb.DuckDBPyConnection, source: str) -> None:
    """Marks the programmes that newer guides replace, after other feeds were renamed to ``source``."""
    connection.execute(_NEWER_WINDOWS_QUERY, {"source": source, "at": None})
    stored_programmes = "(SELECT * FROM programmes JOIN feeds USING (feed_id, source) WHERE source = $source)"
    query = f"""
        UPDATE programmes SET replaced_by = first_newer.feed_id
        FROM ({_FIRST_NEWER_QUERY.format(programmes=stored_programmes)}) AS first_newer
        WHERE first_newer.programme_id = programmes.programme_id AND programmes.replaced_by IS NULL
    """
    connection.execute(query, {"source": source})


def _restore_repeated(connection: duckdb.DuckDBPyConnection) -> None:
    """Stores programmes again that a late import replaces but the next newer grab repeats.

    A programme that several grabs repeat word for word is stored only once, for the oldest of these grabs.
    """
    connection.execute("""
        CREATE OR REPLACE TEMP TABLE restored AS
        SELECT programme_id AS old_id, replaced_by, feed_id,
               row_number() OVER (ORDER BY programme_id) + (
                   SELECT greatest((SELECT max(programme_id) FROM programmes), max(programme_id))
                   FROM staged_programmes
               ) AS new_id
        FROM (
            SELECT programme_id, replaced_by, arg_min(newer.feed_id, (grabbed_at, newer.feed_id)) AS feed_id
            FROM affected
            JOIN newer ON newer.channel = affected.channel AND start >= begins AND start < ends
            GROUP BY ALL
        )
        WHERE replaced_by IS DISTINCT FROM feed_id
    """)
    columns = dict.fromkeys(PROGRAMME_TABLES, "new_id AS programme_id")
    columns["programmes"] += ", restored.feed_id AS feed_id, restored.replaced_by AS replaced_by"
    for table, replaced_columns in columns.items():
        query = f"SELECT {table}.* REPLACE ({replaced_columns}) FROM {table}"
        connection.execute(f"INSERT INTO {table} {query} JOIN restored ON old_id = programme_id")


def _delete_programmes(connection: duckdb.DuckDBPyConnection, grab: Grab, id_table: str) -> int:
    """Deletes the programmes of an import whose ids are in the table ``id_table``; returns their number."""
    for table in reversed(PROGRAMME_TABLES):  # programmes last, because their number is fetched
        ids = f"SELECT programme_id FROM {id_table}"
        connection.execute(f"DELETE FROM {grab.prefix}{table} WHERE programme_id IN ({ids})")
    return connection.fetchall()[0][0]
