"""Writes snapshots: the TV programmes of all feeds as they were at an instant, as Parquet files.

A source is the name of a feed, a grab is one version of a feed, and a window is the time that a grab covers
on a channel. If several sources cover the same channel and time, only the source with the highest priority is
used: the source that matches the earliest pattern of ``priority`` or, if several match it or none matches,
the source that was imported first. Outside of the windows of this source, programmes come from the source
with the next lower priority.

Channels of two sources are the same channel if they have the same id and a common display name (only letters
and digits are compared, ignoring case). The id alone is not sufficient, because many guides number their
channels from 1. If a source has no name for a channel, the id is sufficient if it contains a letter.
"""

import datetime
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from storage.catalogue.connection import Catalogue, escape_quotes
from storage.catalogue.feeds import to_naive_utc
from storage.catalogue.local_time import local_zone
from storage.catalogue.retention import require_history
from storage.source_patterns import matches_any, rank_of

RULES_VERSION = 7  # incremented if a new version of this module writes another snapshot of the same catalogue
MAX_DESCRIPTIONS = 10  # maximum number of distinct descriptions of a raw title
ROLES = "actor", "director", "guest", "presenter"  # roles of the credits that a snapshot contains
_INCLUDED_SCHEMA = pa.schema(
    {"feed_id": pa.int32(), "source": pa.string(), "rank": pa.int32(), "zone": pa.string()}
)

# Selects the newest names of each channel. ``folded`` has their letters and digits, without the channel id.
_CHANNEL_NAMES_QUERY = r"""
    CREATE OR REPLACE TEMP TABLE named AS
    SELECT rank, source, channel, name,
           list_filter(
               [regexp_replace(lower(name), '[^\pL\pN]', '', 'g') FOR name IN names IF name != channel],
               lambda name: name != ''
           ) AS folded
    FROM channel_history
    JOIN included USING (feed_id, source)
    JOIN feeds USING (feed_id, source)
    QUALIFY row_number() OVER (PARTITION BY source, channel ORDER BY grabbed_at DESC, feed_id DESC) = 1
"""
# Selects the windows of preferred sources, each with the rank of a source that is not used within the window.
_PREFERRED_WINDOWS_QUERY = r"""
    CREATE OR REPLACE TEMP TABLE preferred_windows AS
    SELECT DISTINCT lower_priority.rank AS lower_rank, channel, begins, ends
    FROM named AS preferred
    JOIN named AS lower_priority USING (channel)
    JOIN included ON included.source = preferred.source
    JOIN windows USING (feed_id, channel)
    WHERE preferred.rank < lower_priority.rank
      AND (
        list_has_any(preferred.folded, lower_priority.folded)
        OR (regexp_matches(channel, '\pL') AND (len(preferred.folded) = 0 OR len(lower_priority.folded) = 0))
      )
"""
_FILE_QUERIES = {
    "programmes": """
        SELECT source, channel, start, stop, title, title_language, sub_title, categories,
               episode_numbers, episode_systems, season, seasons, episode, episodes, part, parts, date, zone,
               is_new, is_premiere, previously_shown, ratings,
               nullif(
                   [{{'role': credit.role, 'name': credit.name}}
                    FOR credit IN credits
                    IF credit.role IN {roles}],
                   []
               ) AS credits,
               countries, keywords, original_language, length_minutes, icon
        FROM (FROM {current}) AS programmes
        JOIN (SELECT DISTINCT source, rank, zone FROM included) AS ranks USING (source)
        LEFT JOIN details USING (programme_id)
        WHERE {is_preferred}
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
        FROM (FROM {current}) AS programmes
        JOIN (SELECT DISTINCT source, rank FROM included) AS ranks USING (source)
        JOIN details USING (programme_id)
        WHERE {is_preferred} AND description != ''
        GROUP BY title, description
        QUALIFY row_number() OVER (PARTITION BY title ORDER BY airings DESC, description) <= {descriptions}
        ORDER BY title, airings DESC, description
    """,
}
_PATTERNS_QUERY = "SELECT sub_title, pattern FROM sub_title_patterns ORDER BY sub_title"
_PREFERRED_CONDITION = """
    NOT EXISTS (
        FROM preferred_windows AS preferred
        WHERE preferred.channel = programmes.channel AND preferred.lower_rank = ranks.rank
          AND programmes.start >= preferred.begins AND programmes.start < preferred.ends
    )
"""


@dataclass(frozen=True, kw_only=True)
class SnapshotOptions:
    """Options of a snapshot: which feeds it contains, their priority, and its instant.

    Patterns are fnmatch patterns for the names of feeds (sources).
    """

    leave_out: Sequence[str] = ()  # patterns of feeds that are not in the snapshot
    priority: Sequence[str] = ()  # patterns of feeds, the preferred feeds first
    as_of: datetime.datetime | None = None  # instant with a time zone; later versions of feeds are omitted
    zone: str = "UTC"  # time zone of channels whose feed has no IANA zone

    @property
    def instant(self) -> datetime.datetime | None:
        """Returns ``as_of`` as a naive datetime in UTC."""
        return self.as_of and to_naive_utc(self.as_of)


DEFAULT_OPTIONS = SnapshotOptions()


def included_feeds(
    catalogue: Catalogue, options: SnapshotOptions = DEFAULT_OPTIONS
) -> list[tuple[int, str, str, str]]:
    """Returns the imports of feeds in a snapshot as (feed_id, source, content_digest, zone), oldest first."""
    query = """
        SELECT feed_id, source, content_digest, zone
        FROM feeds
        WHERE grabbed_at <= coalesce(?, TIMESTAMP 'infinity')
        ORDER BY grabbed_at, feed_id
    """
    rows = catalogue.connection.execute(query, [options.instant]).fetchall()
    return [row for row in rows if not matches_any(row[1], options.leave_out)]


def snapshot_digest(catalogue: Catalogue, options: SnapshotOptions = DEFAULT_OPTIONS) -> str:
    """Computes a SHA-256 that changes if the content of the snapshot may change.

    The digest covers the versions of the schema and of this module, the imports of feeds in the snapshot, the
    options, and the patterns (kinds) of sub-titles.
    """
    content = [
        catalogue.schema_version,
        RULES_VERSION,
        [feed[1:] for feed in included_feeds(catalogue, options)],
        sorted(set(options.leave_out)),
        list(options.priority),
        options.instant and options.instant.isoformat(),
        options.zone,
    ]
    if patterns := catalogue.connection.execute(_PATTERNS_QUERY).fetchall():
        content.append(hashlib.sha256(json.dumps(patterns).encode()).hexdigest())
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def write_snapshot(
    catalogue: Catalogue, folder: Path, options: SnapshotOptions = DEFAULT_OPTIONS
) -> dict[str, int]:
    """Writes programmes, channels, feeds and descriptions to Parquet files with a fixed order of rows.

    If the catalogue has patterns of sub-titles (`guidespace patterns`), patterns.parquet is written, too.

    Returns:
        Number of rows by file name without suffix.

    Raises:
        HomeError: `guidespace gc` may have deleted programmes of the guide as of the instant.
    """
    require_history(catalogue.home, options.instant)
    connection = catalogue.connection
    feeds = included_feeds(catalogue, options)
    first_feed_ids = {source: feed_id for feed_id, source, *_ in sorted(feeds, reverse=True)}
    ranked_sources = sorted(
        first_feed_ids, key=lambda source: (rank_of(source, options.priority), first_feed_ids[source])
    )
    # ``feeds`` are sorted by time, so the dictionary keeps the zone of the newest grab of each source
    zones = {source: local_zone(zone, options.zone) for _, source, _, zone in feeds}
    ranked_feeds = [
        (feed_id, source, ranked_sources.index(source), zones[source]) for feed_id, source, *_ in feeds
    ]
    included = pa.table(list(zip(*ranked_feeds)) or [[]] * 4, schema=_INCLUDED_SCHEMA)  # noqa: F841  (the SQL reads this local variable)
    connection.execute(_CHANNEL_NAMES_QUERY)
    preferred_count = connection.execute(_PREFERRED_WINDOWS_QUERY).fetchall()[0][0]
    current_programmes = "programmes WHERE replaced_by IS NULL"
    if options.instant is not None:
        current_programmes = f"programmes_as_of(TIMESTAMP '{options.instant}')"
    counts: dict[str, int] = {}
    has_patterns = connection.execute("SELECT count(*) > 0 FROM sub_title_patterns").fetchall()[0][0]
    for name, query in (_FILE_QUERIES | ({"patterns": _PATTERNS_QUERY} if has_patterns else {})).items():
        is_preferred = _PREFERRED_CONDITION if preferred_count else "true"
        query = query.format(
            current=current_programmes, is_preferred=is_preferred, descriptions=MAX_DESCRIPTIONS, roles=ROLES
        )
        file = escape_quotes(folder / f"{name}.parquet")
        copy_statement = f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)"
        counts[name] = connection.execute(copy_statement).fetchall()[0][0]
    connection.execute("DROP TABLE temp.named; DROP TABLE temp.preferred_windows")
    return counts
