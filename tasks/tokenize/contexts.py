"""Computes context tokens: how a title airs, and what the guide states about it (facts).

Tokens of airings have the kinds channel, hour, weekday, duration and manner. The tokens of the kind
``manner`` are the language, the number of airings and channels, and the shares of airings with sub-titles,
episode numbers and dates. Tokens of facts have one of these kinds:

=================  ==============================================================================
person             people in the credits, each with and without the role; names are hashed
country            countries of production
date               decade of production, and year if the airing has no episode number
rating             age ratings
keyword            keywords
original_language  original language
length             length without commercials, in the classes of ``duration``
=================  ==============================================================================

No token depends on a category. A title has the tokens of all its airings. One of the held-out sets is
next_period, the last part of the guide (splits.py). Its titles have the tokens of their airings in this
period. All other titles have the tokens of their earlier airings, so that training does not see the future.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike

from storage.catalogue.connection import Connection, escape_glob, present_columns
from storage.catalogue.local_time import JOIN_OFFSETS, UTC_OFFSETS

# Columns of facts and their SQL types. Guides of older versions lack these columns.
FACTS = {
    "credits": "STRUCT(role VARCHAR, name VARCHAR)[]",
    "ratings": "STRUCT(system VARCHAR, value VARCHAR)[]",
    **dict.fromkeys(("countries", "keywords"), "VARCHAR[]"),
    "original_language": "VARCHAR",
    "length_minutes": "DOUBLE",
}
CHUNK_TITLES = 50_000  # titles per query (2.5 million rows), because DuckDB cannot spill distinct tokens
SCHEMA = pa.schema({"title_id": pa.int32(), "kind": pa.string(), "token": pa.string()})


def write_contexts(
    connection: Connection,
    *,
    guide: Path,
    variants: Path,
    kinds: Sequence[str],
    path: Path,
    next_period_ids: ArrayLike = (),
    next_period_begin: int | None = None,
) -> None:
    """Writes the distinct context tokens of each title to a Parquet file.

    The file has the columns title_id, kind and token, by which its rows are sorted. A token starts with its
    kind, as in ``hour:20``. Hours and weekdays are in the time zone of the channel.

    Args:
        connection: Temporary database.
        guide: Folder with the Parquet files of a Guide.
        variants: Parquet file with the columns raw_title (as in the feed) and title_id.
        kinds: Kinds of tokens to write: any of CONTEXT_KINDS (tasks/text/words.py) and ``pattern``, which
            adds the pattern that most sub-titles of a title have (``manner:pattern:guests``).
        path: The file to write.
        next_period_ids: Ids of the titles in the held-out set next_period.
        next_period_begin: Begin of next_period in microseconds since 1970; None if there is no such set.
    """
    next_titles = pa.table({"title_id": pa.array(next_period_ids, pa.int32())})  # noqa: F841  (SQL reads this variable)
    connection.execute("CREATE OR REPLACE TABLE patterns (sub_title VARCHAR, pattern VARCHAR)")
    if "pattern" in kinds and (guide / "patterns.parquet").exists():
        patterns = escape_glob(guide / "patterns.parquet")
        connection.execute("INSERT INTO patterns FROM read_parquet(?)", [patterns])
    facts = present_columns(guide / "programmes.parquet", FACTS)
    query = f"""
        CREATE OR REPLACE TABLE context_airings AS
        WITH names AS (
            SELECT source, channel, min(name) AS name
            FROM read_parquet($channels)
            GROUP BY source, channel
        ),
        {UTC_OFFSETS}
        SELECT title_id, channel, name, start + utc_offset AS local_start, title_language, date,
               date_diff('minute', start, stop) AS minutes, sub_title IS NOT NULL AS has_sub_title,
               coalesce(len(episode_numbers), 0) > 0 AS has_episode, pattern, {facts}
        FROM read_parquet($programmes) AS programmes
        {JOIN_OFFSETS}
        JOIN read_parquet($variants) ON raw_title = title
        LEFT JOIN names USING (source, channel)
        LEFT JOIN patterns USING (sub_title)
        WHERE $cut IS NULL OR (epoch_us(start) >= $cut) = (title_id IN (SELECT title_id FROM next_titles))
        ORDER BY title_id
    """
    files = {name: escape_glob(guide / f"{name}.parquet") for name in ("programmes", "channels")}
    connection.execute(query, files | {"variants": escape_glob(variants), "cut": next_period_begin})
    connection.execute(_LENGTH_CLASS)
    (end,) = connection.sql("SELECT coalesce(max(title_id) + 1, 0) FROM context_airings").fetchall()[0]
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for first_title in range(0, end, CHUNK_TITLES):
            values = {"first": first_title, "end": first_title + CHUNK_TITLES, "kinds": list(kinds)}
            writer.write_table(connection.sql(_TOKENS_OF_CHUNK, params=values).to_arrow_table().cast(SCHEMA))


_LENGTH_CLASS = """
    CREATE OR REPLACE TEMP MACRO length_class(minutes) AS
        CASE WHEN minutes BETWEEN 1 AND 1440
        THEN [0, 10, 20, 30, 45, 60, 90, 120, 180][
            1 + len(list_filter([8, 18, 26, 38, 53, 75, 105, 150], lambda bound: minutes >= bound))
        ]::VARCHAR END
"""
_TOKENS_OF_CHUNK = r"""
    WITH chunk AS (FROM context_airings WHERE title_id >= $first AND title_id < $end),
    shares AS (
        SELECT title_id,
               round(2 * avg(has_sub_title::INT))::INT AS sub_titles,
               round(2 * avg(has_episode::INT))::INT AS episodes,
               round(2 * avg((date IS NOT NULL)::INT))::INT AS dates,
               floor(log2(count(*)))::INT AS airings, floor(log2(count(DISTINCT channel)))::INT AS channels
        FROM chunk
        GROUP BY title_id
    ),
    people AS (
        SELECT title_id, credit.role AS role, left(md5(lower(trim(credit.name))), 16) AS name
        FROM (SELECT DISTINCT title_id, unnest(credits) AS credit FROM chunk)
    ),
    tokens AS (
        SELECT title_id, unnest([
                   'channel:' || lower(channel),
                   'hour:' || hour(local_start), 'weekday:' || isodow(local_start),
                   'duration:' || coalesce(length_class(minutes), 'unknown'),
                   'length:' || length_class(length_minutes),
                   'manner:language:' || lower(title_language),
                   'original_language:' || lower(original_language),
                   'date:decade:' || nullif(regexp_extract(date, '^(1[89]|20)\d', 0), '') || '0',
                   'date:year:' || CASE WHEN NOT has_episode
                       THEN nullif(regexp_extract(date, '^(1[89]|20)\d\d', 0), '') END
               ]) AS token
        FROM chunk
        UNION ALL
        SELECT title_id, unnest(flatten([
                   ['country:' || lower(trim(name)) FOR name IN countries],
                   ['keyword:' || lower(trim(word)) FOR word IN keywords],
                   ['rating:' || lower(trim(rating.value)) FOR rating IN ratings]
               ]))
        FROM chunk
        UNION ALL
        SELECT title_id, unnest(['person:' || name, 'person:' || role || ':' || name])
        FROM people
        UNION ALL
        SELECT title_id, 'channel:word:' || unnest(regexp_extract_all(lower(name), '\p{L}{2,}'))
        FROM chunk
        UNION ALL
        SELECT title_id, 'manner:' || unnest([
                   'sub-titles:' || sub_titles, 'episodes:' || episodes, 'dates:' || dates,
                   'airings:' || least(6, airings), 'channels:' || least(4, channels)
               ])
        FROM shares
        UNION ALL
        SELECT title_id, 'manner:pattern:' || pattern
        FROM chunk
        WHERE pattern IS NOT NULL
        GROUP BY title_id, pattern
        HAVING 2 * count(*) > (SELECT count(*) FROM chunk AS airings WHERE airings.title_id = chunk.title_id)
    )
    SELECT DISTINCT title_id, split_part(token, ':', 1) AS kind, token
    FROM tokens
    WHERE list_contains($kinds, split_part(token, ':', 1)) OR token LIKE 'manner:pattern:%'
    ORDER BY title_id, kind, token
"""


def write_context_counts(connection: Connection, contexts: Path, titles: Path, path: Path) -> None:
    """Counts the training titles with each context token.

    Args:
        connection: Temporary database.
        contexts: File that ``write_contexts`` has written.
        titles: Parquet file with the column ``split``; row i is title i.
        path: Parquet file to write, with kind, token, term_frequency and document_frequency.
    """
    query = """
        SELECT kind, token, count(*) AS term_frequency, count(*) AS document_frequency
        FROM read_parquet(?)
        JOIN (
            SELECT file_row_number AS title_id
            FROM read_parquet(?, file_row_number = true)
            WHERE split = 'train'
        ) USING (title_id)
        GROUP BY kind, token
    """
    counts = connection.sql(query, params=[escape_glob(contexts), escape_glob(titles)])
    counts.write_parquet(str(path), compression="zstd")
