"""Snapshots: what was known at an instant, as Parquet files that are readable while the next feed is written.

Where several sources cover one channel and time, the one with the highest priority is used: sources that
match an earlier pattern of ``priority`` first, then the source read first. It is used throughout the windows
of its grabs; elsewhere the next one is.

Two sources mean one channel if they give it the same id and have a display name in common (its letters and
digits, ignoring case). An id alone is no identity, since many guides number their channels from 1. Where a
source gives a channel no name at all, the id counts if there is a letter in it.
"""

import datetime
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow as pa

from storage.catalogue.connection import Catalogue, quoted
from storage.catalogue.local_time import local_zone
from storage.catalogue.retention import check_instant

RULES = 5  # increased when the same catalogue gives another snapshot
DESCRIPTIONS = 10  # distinct ones of a raw title, most airings first
_INCLUDED = pa.schema({"feed_id": pa.int32(), "source": pa.string(), "rank": pa.int32(), "zone": pa.string()})

# Channels as last described; names reduced to letters and digits, empty if the id is the only name.
_NAMED = r"""
    CREATE OR REPLACE TEMP TABLE named AS
    SELECT rank, source, channel, name,
           list_filter(
               [regexp_replace(lower(each), '[^\pL\pN]', '', 'g') FOR each IN names IF each != channel],
               lambda each: each != ''
           ) AS folded
    FROM channel_history
    JOIN included USING (feed_id, source)
    JOIN feeds USING (feed_id, source)
    QUALIFY row_number() OVER (PARTITION BY source, channel ORDER BY grabbed_at DESC, feed_id DESC) = 1
"""
# The windows in which a source is used, and the ranks that are not used there.
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
_FILES = {
    "programmes": """
        SELECT source, channel, start, stop, title, title_language, sub_title, categories,
               episode_numbers, episode_systems, season, seasons, episode, episodes, part, parts, date, zone
        FROM (FROM {said}) AS programmes
        JOIN (SELECT DISTINCT source, rank, zone FROM included) AS ranks USING (source)
        WHERE {heard}
        ORDER BY source, channel, start, title, programme_id
    """,
    "channels": "SELECT source, channel, name FROM named ORDER BY source, channel",
    "feeds": """
        SELECT source, content_digest, seen, stored, duplicates, rejected
        FROM feeds
        WHERE feed_id IN (SELECT feed_id FROM included)
        ORDER BY grabbed_at, feed_id
    """,
    "descriptions": """
        SELECT title, description, count(*) AS airings
        FROM (FROM {said}) AS programmes
        JOIN (SELECT DISTINCT source, rank FROM included) AS ranks USING (source)
        JOIN details USING (programme_id)
        WHERE {heard} AND description != ''
        GROUP BY title, description
        QUALIFY row_number() OVER (PARTITION BY title ORDER BY airings DESC, description) <= {descriptions}
        ORDER BY title, airings DESC, description
    """,
}
_PATTERNS = "SELECT sub_title, pattern FROM sub_title_patterns ORDER BY sub_title"
_NOT_OUTRANKED = """
    NOT EXISTS (
        FROM heard
        WHERE heard.channel = programmes.channel AND heard.outranked = ranks.rank
          AND programmes.start >= heard.begins AND programmes.start < heard.ends
    )
"""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a snapshot holds, by fnmatch patterns of sources."""

    leave_out: Sequence[str] = ()  # these stay in the catalogue only
    priority: Sequence[str] = ()  # the first is used before all others
    as_of: datetime.datetime | None = None  # instant with a time zone; later grabs are left out
    zone: str = "UTC"  # of channels whose source has no IANA zone of its own

    @property
    def instant(self) -> datetime.datetime | None:
        """``as_of`` in UTC, as the catalogue keeps time."""
        return self.as_of and self.as_of.astimezone(datetime.UTC).replace(tzinfo=None)

    def rank(self, source: str) -> int:
        """Index of the first pattern of ``priority`` that the source matches."""
        return next((i for i, p in enumerate(self.priority) if fnmatchcase(source, p)), len(self.priority))


ALL = Choice()


def included_feeds(catalogue: Catalogue, choice: Choice = ALL) -> list[tuple[int, str, str, str]]:
    """(feed_id, source, content digest, zone) of the grabs in a snapshot, in the order they were made."""
    query = """
        SELECT feed_id, source, content_digest, zone
        FROM feeds
        WHERE grabbed_at <= coalesce(?, TIMESTAMP 'infinity')
        ORDER BY grabbed_at, feed_id
    """
    rows = catalogue.connection.execute(query, [choice.instant]).fetchall()
    return [row for row in rows if not any(fnmatchcase(row[1], pattern) for pattern in choice.leave_out)]


def snapshot_digest(catalogue: Catalogue, choice: Choice = ALL) -> str:
    """SHA-256 over the versions of schema and rules, the included grabs with their zones, the choice, and the
    patterns of sub-titles where there are any.
    """
    ledger = [feed[1:] for feed in included_feeds(catalogue, choice)]
    left_out, instant = sorted(set(choice.leave_out)), choice.instant and choice.instant.isoformat()
    content = [catalogue.schema_version, RULES, ledger, left_out, list(choice.priority), instant, choice.zone]
    if patterns := catalogue.connection.execute(_PATTERNS).fetchall():
        content.append(hashlib.sha256(json.dumps(patterns).encode()).hexdigest())
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def snapshot(catalogue: Catalogue, folder: Path, choice: Choice = ALL) -> dict[str, int]:
    """Writes programmes, channels, feeds and descriptions (title, description, airings) as .parquet, each in
    a fixed order, into ``folder``, and returns the rows of each by its name without suffix; and where
    sub-titles have patterns (`guidespace patterns`), these as patterns.parquet (sub_title, pattern). A
    HomeError where what was known at the instant was forgotten.
    """
    check_instant(catalogue.home, choice.instant)
    connection = catalogue.connection
    feeds = included_feeds(catalogue, choice)
    first_read = {source: feed_id for feed_id, source, *_ in sorted(feeds, reverse=True)}
    order = sorted(first_read, key=lambda source: (choice.rank(source), first_read[source]))
    zones = {source: local_zone(zone, choice.zone) for _, source, _, zone in feeds}  # of the newest grab
    ranked = [(feed_id, source, order.index(source), zones[source]) for feed_id, source, *_ in feeds]
    included = pa.table(list(zip(*ranked)) or [[]] * 4, schema=_INCLUDED)  # noqa: F841  (found by its name)
    connection.execute(_NAMED)
    shared = connection.execute(_HEARD).fetchall()[0][0]
    said = "programmes WHERE replaced_by IS NULL"
    if choice.instant is not None:
        said = f"programmes_as_of(TIMESTAMP '{choice.instant}')"
    counts: dict[str, int] = {}
    patterned = connection.execute("SELECT count(*) > 0 FROM sub_title_patterns").fetchall()[0][0]
    for name, query in (_FILES | ({"patterns": _PATTERNS} if patterned else {})).items():
        heard = _NOT_OUTRANKED if shared else "true"
        query = query.format(said=said, heard=heard, descriptions=DESCRIPTIONS)
        file = quoted(folder / f"{name}.parquet")
        copy = f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)"
        counts[name] = connection.execute(copy).fetchall()[0][0]
    connection.execute("DROP TABLE temp.named; DROP TABLE temp.heard")
    return counts
