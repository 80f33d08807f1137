"""How a grab replaces what earlier grabs of its source say.

A grab covers one *window* per channel: from its first start there to the end of its last programme. Within
the window, programmes of an older grab are replaced unless they are repeated word for word. Outside of
it, and on other channels and of other sources, nothing changes, with one exception.

A programme that begins before the window and ends in it is running when the window begins. Guides often omit
the running programme, so its absence says nothing. It is *displaced*, and replaced like the others, if the
newer grab starts a programme before its end that

- has its title (it was rescheduled) or takes more than a quarter of its time (it was cancelled; one that
  takes less cuts it short, so it was on the air), and
- was not in the schedule beside it before (parts that are listed beside the whole).

A programme that ends when the window begins is not running. Nothing is deleted: ``replaced_by`` names the
grab that took the place. Grabs are ordered by when they were made (then by when they were read): an old guide
read late takes its place in the past and replaces nothing newer.
"""

import datetime
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from storage.catalogue.connection import allow_memory
from storage.catalogue.open_ends import OpenEnds

TABLES = ("programmes", "details", "originals")
SAYS = (
    "programmes.stop, programmes.stop_note, title_language, sub_title, categories, episode_numbers, "
    "episode_systems, date, extra"
)
MORE = (
    "description, translations, keywords, credits, is_new, is_premiere, is_live, previously_shown, "
    "previously_shown_at, star_ratings, ratings, length_minutes, language, original_language, countries, "
    "icon, urls"
)
_FILLED = " + ".join(
    f"coalesce({name}::VARCHAR NOT IN ('[]', 'false'), false)::INTEGER"
    for name in f"{SAYS}, {MORE}".split(", ")
    if "stop" not in name
)
# Whether a programme ``later`` displaces the programme ``running``, unless it was in the schedule beside it.
_DISPLACES = """
    later.channel = running.channel AND later.start > running.start AND later.start < running.stop
    AND (later.title = running.title OR later.start < running.stop - (running.stop - running.start) / 4)
"""
_HAS_STOP = "coalesce(stop_note, 'missing') IN ('missing', 'unreadable')"  # as given, or the next start
_NEWER = """
    CREATE OR REPLACE TEMP TABLE newer AS
    SELECT windows.feed_id, channel, begins, ends, grabbed_at
    FROM windows
    JOIN feeds USING (feed_id)
    WHERE source = $source AND ($at::TIMESTAMP IS NULL OR grabbed_at > $at)
"""
# The first of the grabs in ``newer`` that replaces each programme of a relation (with its ``grabbed_at``).
_FIRST_NEWER = f"""
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
        JOIN programmes AS later ON later.feed_id = newer.feed_id AND {_DISPLACES}
        LEFT JOIN running AS beside
          ON (beside.feed_id, beside.channel, beside.start, beside.title)
           = (running.feed_id, later.channel, later.start, later.title)
        WHERE beside.programme_id IS NULL AND {_HAS_STOP.replace("stop_note", "running.stop_note")}
    )
    GROUP BY programme_id
"""
_BOUNDS = pa.schema({"channel": pa.string(), "start": pa.timestamp("us"), "next": pa.timestamp("us")})
OPEN_END = 160  # bytes that DuckDB needs for a programme whose stop is looked for, about
PART = 500_000  # programmes searched for duplicates at a time: all at once, 3 million take 130 MB


class Grab(NamedTuple):
    """A feed's content at an instant."""

    feed_id: int
    source: str
    content_digest: str  # SHA-256 of its bytes
    at: datetime.datetime  # when it was made, UTC without a zone
    known: bool  # whether the source was read before; if so its programmes wait in ``staged_*``

    @property
    def prefix(self) -> str:
        """Of the tables that hold what has just been read."""
        return "staged_" if self.known else ""


def infer_stops(connection: duckdb.DuckDBPyConnection, grab: Grab, open_ends: OpenEnds) -> None:
    """Fills missing stops with the next start on the channel, if that is within a day."""
    table, following = f"{grab.prefix}programmes", "bounds"
    if open_ends.ordered:
        bounds = pa.table(list(zip(*open_ends.bounds)) or [[]] * 3, schema=_BOUNDS)  # noqa: F841  (found by its name)
    else:  # DuckDB keeps in memory until the commit what it updates and the channels it looks along
        allow_memory(connection, open_ends.count * OPEN_END)
        following = f"""(
            SELECT channel, start, lead(start) OVER (PARTITION BY channel ORDER BY start) AS next
            FROM (SELECT DISTINCT channel, start FROM {table} WHERE feed_id = $feed_id)
        )"""
    query = f"""
        UPDATE {table} SET stop = following.next
        FROM {following} AS following
        WHERE feed_id = $feed_id AND stop_note IN ('missing', 'unreadable')
          AND following.channel = {table}.channel AND following.start = {table}.start
          AND following.next <= {table}.start + INTERVAL 1 DAY AND stop IS DISTINCT FROM following.next
    """
    connection.execute(query, {"feed_id": grab.feed_id})


def drop_doubles(connection: duckdb.DuckDBPyConnection, grab: Grab, arrived: int) -> int:
    """Deletes a feed's duplicates (same channel, start and title) and returns their number.

    The programme with a stop after its start stays, then the one with more columns filled, then the first.
    """
    table, parts = f"{grab.prefix}programmes", 1 + arrived // PART
    distinct = f"""
        SELECT count(DISTINCT key)
        FROM (SELECT hash(channel, start, title) AS key FROM {table} WHERE feed_id = $feed_id)
        WHERE key % $parts = $part
    """
    values = ({"feed_id": grab.feed_id, "parts": parts, "part": part} for part in range(parts))
    if sum(connection.execute(distinct, own).fetchall()[0][0] for own in values) == arrived:
        return 0
    query = f"""
        CREATE OR REPLACE TEMP TABLE doubles AS
        WITH alike AS (
            SELECT programme_id
            FROM {table}
            WHERE feed_id = $feed_id
            QUALIFY count(*) OVER (PARTITION BY channel, start, title) > 1
        )
        SELECT programme_id
        FROM alike
        JOIN {table} AS programmes USING (programme_id)
        LEFT JOIN {grab.prefix}details USING (programme_id)
        QUALIFY row_number() OVER (
            PARTITION BY channel, start, title
            ORDER BY stop_note IS NOT NULL, {_FILLED} DESC, programme_id
        ) > 1
    """
    connection.execute(query, {"feed_id": grab.feed_id})
    return _delete_read(connection, grab, "doubles")


def write_windows(connection: duckdb.DuckDBPyConnection, grab: Grab) -> None:
    """Writes one window per channel; odd stops do not extend it.

    Bytes read again in another zone also cover the windows of their first reading: nothing airs there now.
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
    values = {"feed_id": grab.feed_id, "source": grab.source, "content_digest": grab.content_digest}
    connection.execute(query, values)


def replace(connection: duckdb.DuckDBPyConnection, grab: Grab) -> int:
    """Moves staged programmes into the catalogue, marks what they replace, and returns the number dropped.

    Those that repeat a stored programme word for word are dropped.
    """
    feed, source = {"feed_id": grab.feed_id}, {"source": grab.source, "at": grab.at}
    _find_known(connection, feed | source)
    late = connection.execute(_NEWER, source).fetchall()[0][0]  # grabs read before this one
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE repeated AS
        SELECT min(programmes.programme_id) AS programme_id, known.programme_id AS known_id
        FROM staged_programmes AS programmes
        LEFT JOIN staged_details USING (programme_id)
        JOIN known USING (channel, start, title)
        WHERE known.says = hash({SAYS}) AND known.more = hash({MORE})
        GROUP BY known.programme_id
    """)
    connection.execute("DELETE FROM known WHERE programme_id IN (SELECT known_id FROM repeated)")
    if late:
        _restore(connection)
    query = """
        UPDATE programmes SET replaced_by = $feed_id
        WHERE programme_id IN (SELECT programme_id FROM known)
    """
    connection.execute(query, feed)
    repeats = _delete_read(connection, grab, "repeated")
    if late:
        staged = "(SELECT *, $at::TIMESTAMP AS grabbed_at FROM staged_programmes)"
        query = f"""
            UPDATE staged_programmes AS staged SET replaced_by = first_newer.feed_id
            FROM ({_FIRST_NEWER.format(programmes=staged)}) AS first_newer
            WHERE first_newer.programme_id = staged.programme_id
        """
        connection.execute(query, {"at": grab.at})
    for table in TABLES:
        connection.execute(f"INSERT INTO {table} FROM staged_{table}")
    return repeats


def _find_known(connection: duckdb.DuckDBPyConnection, values: dict[str, Any]) -> None:
    """Creates ``known``: programmes of the source, as of the grab, in its windows or displaced by it."""
    query = f"""
        CREATE OR REPLACE TEMP TABLE known AS
        SELECT programmes.programme_id, programmes.channel, programmes.start, programmes.stop, title,
               replaced_by, hash({SAYS}) AS says, hash({MORE}) AS more,
               programmes.start < begins AS is_running
        FROM programmes
        JOIN windows ON windows.feed_id = $feed_id AND windows.channel = programmes.channel
         AND programmes.start < ends
         AND (programmes.start >= begins OR (programmes.stop > begins AND {_HAS_STOP}))
        JOIN feeds AS said ON said.feed_id = programmes.feed_id
        LEFT JOIN feeds AS unsaid ON unsaid.feed_id = programmes.replaced_by
        LEFT JOIN details USING (programme_id)
        WHERE programmes.source = $source
          AND said.grabbed_at <= $at AND (unsaid.feed_id IS NULL OR unsaid.grabbed_at > $at)
    """
    connection.execute(query, values)
    connection.execute(f"""
        DELETE FROM known
        WHERE is_running AND programme_id NOT IN (
            SELECT running.programme_id
            FROM known AS running
            JOIN staged_programmes AS later ON {_DISPLACES}
            LEFT JOIN known AS beside
              ON (beside.channel, beside.start, beside.title) = (later.channel, later.start, later.title)
            WHERE running.is_running AND beside.programme_id IS NULL
        )
    """)


def replace_older(connection: duckdb.DuckDBPyConnection, source: str) -> None:
    """Marks what a source's grabs replace, as if they had been of one source from the start."""
    connection.execute(_NEWER, {"source": source, "at": None})
    stored = "(SELECT * FROM programmes JOIN feeds USING (feed_id, source) WHERE source = $source)"
    query = f"""
        UPDATE programmes SET replaced_by = first_newer.feed_id
        FROM ({_FIRST_NEWER.format(programmes=stored)}) AS first_newer
        WHERE first_newer.programme_id = programmes.programme_id AND programmes.replaced_by IS NULL
    """
    connection.execute(query, {"source": source})


def _restore(connection: duckdb.DuckDBPyConnection) -> None:
    """A late grab replaces programmes that the next newer grab repeats: from that grab on they hold again."""
    connection.execute("""
        CREATE OR REPLACE TEMP TABLE again AS
        SELECT programme_id AS old_id, replaced_by, feed_id,
               row_number() OVER () + (
                   SELECT greatest((SELECT max(programme_id) FROM programmes), max(programme_id))
                   FROM staged_programmes
               ) AS new_id
        FROM (
            SELECT programme_id, replaced_by, arg_min(newer.feed_id, (grabbed_at, newer.feed_id)) AS feed_id
            FROM known
            JOIN newer ON newer.channel = known.channel AND start >= begins AND start < ends
            GROUP BY ALL
        )
        WHERE replaced_by IS DISTINCT FROM feed_id
    """)
    columns = dict.fromkeys(TABLES, "new_id AS programme_id")
    columns["programmes"] += ", again.feed_id AS feed_id, again.replaced_by AS replaced_by"
    for table, replaced in columns.items():
        rows = f"SELECT {table}.* REPLACE ({replaced}) FROM {table} JOIN again ON old_id = programme_id"
        connection.execute(f"INSERT INTO {table} {rows}")


def _delete_read(connection: duckdb.DuckDBPyConnection, grab: Grab, named: str) -> int:
    """Deletes from what has just been read the programmes in a temporary table; returns their number."""
    for table in reversed(TABLES):  # programmes last: their number is fetched
        query = f"DELETE FROM {grab.prefix}{table} WHERE programme_id IN (SELECT programme_id FROM {named})"
        connection.execute(query)
    return connection.fetchall()[0][0]
