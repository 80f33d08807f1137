"""Snapshots: what was known at an instant, as Parquet files that anyone may read while the next feed is being written.

Where several sources speak of one channel and time, the one with the highest priority is heard: sources that match an
earlier pattern of ``priority`` before those that match a later one or none, then the source read first. It is heard
throughout the windows its grabs speak of; elsewhere the next one is.

One channel is the same id with a display name in common (its letters and digits, case aside). Names alone are no identity,
nor is an id alone: many a guide numbers its channels from 1, and of two such guides neither may silence the other. Where
a source gives a channel no name at all, the id must do, if there is a letter in it.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from storage.catalogue.connection import Catalogue
from storage.catalogue.paths import quoted

RULES = 2  # counts up when the same catalogue gives another snapshot
PARQUET = "(FORMAT parquet, COMPRESSION zstd)"


# Channels as their sources described them last, their names reduced to letters and digits; none where the id is the only name.
_NAMED = r"""
    CREATE OR REPLACE TEMP TABLE named AS
    SELECT rank, source, channel, name,
           list_filter(
               list_transform(list_filter(names, lambda each: each != channel), lambda each: regexp_replace(lower(each), '[^\pL\pN]', '', 'g')),
               lambda each: each != ''
           ) AS folded
    FROM channel_history
    JOIN included USING (feed_id, source)
    JOIN feeds USING (feed_id, source)
    JOIN ranks USING (source)
    QUALIFY row_number() OVER (PARTITION BY source, channel ORDER BY grabbed_at DESC, feed_id DESC) = 1
"""
# Where a source is heard, and which one is not heard there.
_HEARD = r"""
    CREATE OR REPLACE TEMP TABLE heard AS
    SELECT DISTINCT outranked.rank AS outranked, channel, begins, ends
    FROM named AS heard
    JOIN named AS outranked USING (channel)
    JOIN included ON included.source = heard.source
    JOIN windows USING (feed_id, channel)
    WHERE heard.rank < outranked.rank
      AND (
        list_has_any(heard.folded, outranked.folded)
        OR (regexp_matches(channel, '\pL') AND (len(heard.folded) = 0 OR len(outranked.folded) = 0))
      )
"""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a snapshot holds.

    Attributes:
        leave_out: fnmatch patterns; a source that matches one stays in the catalogue only.
        priority: fnmatch patterns of sources, the first is heard before all others.
        as_of: Instant with a time zone; grabs made later are unheard. None: everything.
    """

    leave_out: Sequence[str] = ()
    priority: Sequence[str] = ()
    as_of: datetime.datetime | None = None

    @property
    def instant(self) -> datetime.datetime | None:
        """``as_of`` in UTC, as the catalogue keeps time."""
        return None if self.as_of is None else self.as_of.astimezone(datetime.UTC).replace(tzinfo=None)

    def rank(self, source: str) -> int:
        """Place of a source among the patterns."""
        return next((place for place, pattern in enumerate(self.priority) if fnmatchcase(source, pattern)), len(self.priority))


ALL = Choice()


def included_feeds(catalogue: Catalogue, choice: Choice = ALL) -> list[tuple[int, str, str, str]]:
    """(feed_id, source, content digest, zone) of the grabs that a snapshot is made of, in the order they were made."""
    rows = catalogue.connection.execute(
        "SELECT feed_id, source, content_digest, zone FROM feeds WHERE grabbed_at <= coalesce(?, TIMESTAMP 'infinity') ORDER BY grabbed_at, feed_id", [choice.instant]
    ).fetchall()
    return [row for row in rows if not any(fnmatchcase(row[1], pattern) for pattern in choice.leave_out)]


def snapshot_digest(catalogue: Catalogue, choice: Choice = ALL) -> str:
    """SHA-256 over the versions of the schema and of the rules below, the included grabs in order with their zones, what is left out, who is heard first, and the as-of instant."""
    ledger = [feed[1:] for feed in included_feeds(catalogue, choice)]
    instant = choice.instant and choice.instant.isoformat()
    return hashlib.sha256(json.dumps([catalogue.schema_version, RULES, ledger, sorted(set(choice.leave_out)), list(choice.priority), instant]).encode()).hexdigest()


def snapshot(catalogue: Catalogue, folder: Path, choice: Choice = ALL) -> dict[str, int]:
    """Writes programmes.parquet, channels.parquet and feeds.parquet, each in a fixed order.

    Args:
        folder: An existing folder.
        choice: Which sources, and as of when.

    Returns:
        Rows of each file, by its name without suffix.
    """
    connection = catalogue.connection
    feeds = included_feeds(catalogue, choice)
    first_read = {source: feed_id for feed_id, source, *_ in sorted(feeds, reverse=True)}
    order = sorted(first_read, key=lambda source: (choice.rank(source), first_read[source]))
    connection.execute("CREATE OR REPLACE TEMP TABLE included AS SELECT feed_id, source FROM feeds WHERE feed_id IN (SELECT unnest(?::INTEGER[]))", [[feed[0] for feed in feeds]])
    connection.execute("CREATE OR REPLACE TEMP TABLE ranks AS SELECT unnest(?::VARCHAR[]) AS source, unnest(?::INTEGER[]) AS rank", [order, list(range(len(order)))])
    connection.execute(_NAMED)
    connection.execute(_HEARD)
    shared = connection.execute("SELECT count(*) FROM heard").fetchall()[0][0]
    outranked = """
        AND NOT EXISTS (
            FROM heard
            WHERE heard.channel = programmes.channel AND heard.outranked = ranks.rank AND programmes.start >= heard.begins AND programmes.start < heard.ends
        )
    """
    said = "programmes WHERE replaced_by IS NULL" if choice.instant is None else f"programmes_as_of(TIMESTAMP '{choice.instant}')"
    queries = {
        "programmes": f"""
            SELECT source, channel, start, stop, title, title_language, sub_title, categories, episode_numbers, date
            FROM (FROM {said}) AS programmes
            JOIN ranks USING (source)
            WHERE true {outranked if shared else ""}
            ORDER BY source, channel, start, title, programme_id
        """,
        "channels": """
            SELECT source, channel, name
            FROM named
            ORDER BY source, channel
        """,
        "feeds": """
            SELECT source, content_digest, seen, stored, duplicates, rejected
            FROM feeds
            WHERE feed_id IN (SELECT feed_id FROM included)
            ORDER BY grabbed_at, feed_id
        """,
    }
    counts: dict[str, int] = {}
    for name, query in queries.items():
        place = quoted(str(folder / f"{name}.parquet"))
        counts[name] = connection.execute(f"COPY ({query}) TO '{place}' {PARQUET}").fetchall()[0][0]
    for table in ("included", "ranks", "named", "heard"):
        connection.execute(f"DROP TABLE temp.{table}")
    return counts
