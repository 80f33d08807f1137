"""What a grab does to what its source said before.

A grab speaks of a *window* a channel: from its first start there to the end of its last programme. Within the window it
is the source's word, and what an older grab said of a start inside is replaced unless it is said again word for word.
Outside, and of other channels and sources, nothing changes. Nothing is deleted: ``replaced_by`` names the grab that took
the place. Grabs are ordered by when they were made (then by when they were read), not by when they are read: an old
guide read late takes its place in the past and replaces nothing newer.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from storage.catalogue.connection import allow_memory
from storage.catalogue.open_ends import OpenEnds

SAYS = (
    "programmes.stop, programmes.stop_note, title_language, sub_title, categories, episode_numbers, episode_systems, "
    "date, extra"
)
MORE = (
    "description, translations, keywords, credits, is_new, is_premiere, is_live, previously_shown, previously_shown_at, star_ratings, ratings, "
    "length_minutes, language, original_language, countries, icon, urls"
)
_FILLED = " + ".join(
    f"coalesce({name}::VARCHAR NOT IN ('[]', 'false'), false)::INTEGER"
    for name in f"{SAYS}, {MORE}".split(", ")
    if "stop" not in name
)
OPEN_END = 160  # bytes that DuckDB needs for a programme whose stop is looked for, about
_BOUNDS = pa.schema([("channel", pa.string()), ("start", pa.timestamp("us")), ("next", pa.timestamp("us"))])
PART = 500_000  # programmes looked through for doubles at a time


@dataclass(frozen=True, kw_only=True)
class Grab:
    """A feed's content at an instant.

    Attributes:
        feed_id: Its number.
        source: Whose.
        content_digest: SHA-256 of its bytes.
        at: When it was made, UTC without a zone.
        known: Whether the source was read before; if so its programmes wait in ``staged_*``.
    """

    feed_id: int
    source: str
    content_digest: str
    at: datetime.datetime
    known: bool

    @property
    def prefix(self) -> str:
        """Of the tables that hold what has just been read."""
        return "staged_" if self.known else ""


def infer_stops(connection: duckdb.DuckDBPyConnection, grab: Grab, open_ends: OpenEnds) -> None:
    """Where there is no stop: the next start on the channel, if that is within a day."""
    table = f"{grab.prefix}programmes"
    if open_ends.ordered:
        bounds = pa.table(list(zip(*open_ends.bounds)) or [[]] * 3, schema=_BOUNDS)  # noqa: F841  (found by its name)
        following = "bounds"
    else:  # what it updates, and the channels it looks along, DuckDB keeps in memory until the commit
        allow_memory(connection, open_ends.count * OPEN_END)
        following = f"""(
            SELECT channel, start, lead(start) OVER (PARTITION BY channel ORDER BY start) AS next
            FROM (SELECT DISTINCT channel, start FROM {table} WHERE feed_id = $feed_id)
        )"""
    connection.execute(
        f"""
        UPDATE {table} SET stop = following.next
        FROM {following} AS following
        WHERE feed_id = $feed_id
          AND stop_note IN ('missing', 'unreadable')
          AND following.channel = {table}.channel
          AND following.start = {table}.start
          AND following.next <= {table}.start + INTERVAL 1 DAY
          AND stop IS DISTINCT FROM following.next
        """,
        {"feed_id": grab.feed_id},
    )


def drop_doubles(connection: duckdb.DuckDBPyConnection, grab: Grab, arrived: int) -> int:
    """Of a feed's programmes with the same channel, start and title, the one that says most stays. Returns how many went.

    A stop after the start says more than any other one, then the number of columns that say something decides, then the order.
    """
    table = f"{grab.prefix}programmes"
    parts = 1 + arrived // PART  # a part at a time: all at once 3 million take 130 MB
    count = f"SELECT count(DISTINCT key) FROM (SELECT hash(channel, start, title) AS key FROM {table} WHERE feed_id = $feed_id) WHERE key % $parts = $part"
    distinct = (connection.execute(count, {"feed_id": grab.feed_id, "parts": parts, "part": part}).fetchall()[0][0] for part in range(parts))
    if sum(distinct) == arrived:
        return 0
    connection.execute(
        f"""
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
        """,
        {"feed_id": grab.feed_id},
    )
    return _forget(connection, grab, "doubles")


def write_windows(connection: duckdb.DuckDBPyConnection, grab: Grab) -> None:
    """A row a channel; stops that are odd do not stretch it. Bytes read again in another zone speak of the times in the first one too: nothing airs then."""
    connection.execute(
        f"""
        INSERT INTO windows
        SELECT $feed_id, channel, min(begins), max(ends)
        FROM (
            SELECT channel, min(start) AS begins,
                   greatest(max(start) + INTERVAL 1 MICROSECOND, coalesce(max(stop) FILTER (WHERE stop_note IS NULL), max(start))) AS ends
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
        """,
        {"feed_id": grab.feed_id, "source": grab.source, "content_digest": grab.content_digest},
    )


def replace(connection: duckdb.DuckDBPyConnection, grab: Grab) -> int:
    """Moves staged programmes into the catalogue and marks what they replace.

    Returns:
        How many were dropped, being said again word for word.
    """
    names = {"source": grab.source, "at": grab.at, "feed_id": grab.feed_id}
    # What the source said of these windows when the grab was made, and which newer grab, read before, speaks of them next.
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE known AS
        SELECT programmes.programme_id, programmes.channel, programmes.start, title, replaced_by, hash({SAYS}) AS says, hash({MORE}) AS more
        FROM programmes
        JOIN windows ON windows.feed_id = $feed_id AND windows.channel = programmes.channel AND programmes.start >= begins AND programmes.start < ends
        JOIN feeds AS said ON said.feed_id = programmes.feed_id
        LEFT JOIN feeds AS unsaid ON unsaid.feed_id = programmes.replaced_by
        LEFT JOIN details USING (programme_id)
        WHERE programmes.source = $source
          AND said.grabbed_at <= $at
          AND (unsaid.feed_id IS NULL OR unsaid.grabbed_at > $at)
        """,
        names,
    )
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE newer AS
        SELECT windows.feed_id, channel, begins, ends, grabbed_at
        FROM windows
        JOIN feeds USING (feed_id)
        WHERE source = $source AND grabbed_at > $at
        """,
        {"source": grab.source, "at": grab.at},
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE repeated AS
        SELECT min(programmes.programme_id) AS programme_id, known.programme_id AS known_id
        FROM staged_programmes AS programmes
        LEFT JOIN staged_details USING (programme_id)
        JOIN known USING (channel, start, title)
        WHERE known.says = hash({SAYS}) AND known.more = hash({MORE})
        GROUP BY known.programme_id
        """
    )
    late = connection.execute("SELECT count(*) FROM newer").fetchall()[0][0]
    gone = "programme_id IN (SELECT programme_id FROM known WHERE programme_id NOT IN (SELECT known_id FROM repeated))"
    if late:
        _say_again(connection, gone)
    connection.execute(f"UPDATE programmes SET replaced_by = $feed_id WHERE {gone}", {"feed_id": grab.feed_id})
    repeats = _forget(connection, grab, "repeated")
    if late:
        connection.execute(
            """
            UPDATE staged_programmes AS staged SET replaced_by = first_newer.feed_id
            FROM (
                SELECT programme_id, arg_min(newer.feed_id, (grabbed_at, newer.feed_id)) AS feed_id
                FROM staged_programmes
                JOIN newer ON newer.channel = staged_programmes.channel AND start >= begins AND start < ends
                GROUP BY programme_id
            ) AS first_newer
            WHERE first_newer.programme_id = staged.programme_id
            """
        )
    for table in ("programmes", "details", "originals"):
        connection.execute(f"INSERT INTO {table} FROM staged_{table}")
    return repeats


def _say_again(connection: duckdb.DuckDBPyConnection, gone: str) -> None:
    """Read late, a grab does not say what its elders and the next newer grab both say: from that grab on it stands again."""
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE again AS
        SELECT programme_id AS old_id, replaced_by, feed_id,
               (SELECT max(programme_id) FROM (SELECT programme_id FROM programmes UNION ALL SELECT programme_id FROM staged_programmes)) + row_number() OVER () AS new_id
        FROM (
            SELECT programme_id, replaced_by, arg_min(newer.feed_id, (grabbed_at, newer.feed_id)) AS feed_id
            FROM known
            JOIN newer ON newer.channel = known.channel AND start >= begins AND start < ends
            WHERE {gone}
            GROUP BY ALL
        )
        WHERE replaced_by IS DISTINCT FROM feed_id
        """
    )
    connection.execute(
        """
        INSERT INTO programmes
        SELECT again.new_id, again.feed_id, again.replaced_by, programmes.* EXCLUDE (programme_id, feed_id, replaced_by)
        FROM programmes
        JOIN again ON old_id = programme_id
        """
    )
    for table in ("details", "originals"):
        connection.execute(f"INSERT INTO {table} SELECT new_id, {table}.* EXCLUDE (programme_id) FROM {table} JOIN again ON old_id = programme_id")


def _forget(connection: duckdb.DuckDBPyConnection, grab: Grab, which: str) -> int:
    """Deletes from what has just been read the programmes named by a temporary table."""
    for table in ("details", "originals"):
        connection.execute(f"DELETE FROM {grab.prefix}{table} WHERE programme_id IN (SELECT programme_id FROM {which})")
    return connection.execute(f"DELETE FROM {grab.prefix}programmes WHERE programme_id IN (SELECT programme_id FROM {which})").fetchall()[0][0]
