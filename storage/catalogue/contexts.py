"""Where and how each title airs, as tokens: channel, hour, weekday, duration, manner; never a category.

They are aggregated over a title's airings. Airings of the next period count only for the titles of that
period, and earlier ones only for the other titles: training sees nothing of what comes.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike

from storage.catalogue.connection import escape_glob, temporary_database
from storage.catalogue.local_time import JOIN_OFFSETS, UTC_OFFSETS

TITLES = 250_000  # at once, 2.5 million rows: distinct tokens of all titles are more than DuckDB can spill
SCHEMA = pa.schema({"title_id": pa.int32(), "kind": pa.string(), "token": pa.string()})


def write_contexts(
    guide: Path, variants: Path, later: ArrayLike, cut: int | None, kinds: Sequence[str], path: Path
) -> None:
    """Writes the context tokens of each title: title_id, kind, token; distinct, sorted. A token begins with
    its kind: ``hour:20``. Hours and weekdays are local to the channel (``zone`` in programmes.parquet).

    Args:
        variants: Parquet of raw_title, title_id.
        later: Titles of the next period, which begins at ``cut`` (microseconds since 1970; None if none).
        kinds: Of ``channel``, ``hour``, ``weekday``, ``duration``, ``manner``; and ``pattern``: what most of
            the title's sub-titles are, ``manner:pattern:guests``, where the guide has patterns.
    """
    with temporary_database(path.parent) as connection:
        next_period = pa.table({"title_id": pa.array(later, pa.int32())})  # noqa: F841  (found by its name)
        connection.execute("CREATE TABLE patterns (sub_title VARCHAR, pattern VARCHAR)")
        if "pattern" in kinds and (guide / "patterns.parquet").exists():
            patterns = escape_glob(guide / "patterns.parquet")
            connection.execute("INSERT INTO patterns FROM read_parquet(?)", [patterns])
        query = f"""
            CREATE TABLE airings AS
            WITH names AS (
                SELECT source, channel, min(name) AS name
                FROM read_parquet($channels)
                GROUP BY source, channel
            ),
            {UTC_OFFSETS}
            SELECT title_id, channel, name, start + utc_offset AS local_start, title_language, date,
                   date_diff('minute', start, stop) AS minutes, sub_title IS NOT NULL AS has_sub_title,
                   coalesce(len(episode_numbers), 0) > 0 AS has_episode, pattern
            FROM read_parquet($programmes) AS programmes
            {JOIN_OFFSETS}
            JOIN read_parquet($variants) ON raw_title = title
            LEFT JOIN names USING (source, channel)
            LEFT JOIN patterns USING (sub_title)
            WHERE $cut IS NULL OR (epoch_us(start) >= $cut) = (title_id IN (SELECT title_id FROM next_period))
            ORDER BY title_id
        """
        files = {name: escape_glob(guide / f"{name}.parquet") for name in ("programmes", "channels")}
        connection.execute(query, files | {"variants": escape_glob(variants), "cut": cut})
        (titles,) = connection.sql("SELECT coalesce(max(title_id) + 1, 0) FROM airings").fetchall()[0]
        with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
            for first in range(0, titles, TITLES):
                values = {"first": first, "end": first + TITLES, "kinds": list(kinds)}
                writer.write_table(connection.sql(_TOKENS, params=values).to_arrow_table().cast(SCHEMA))


_TOKENS = r"""
    WITH own AS (FROM airings WHERE title_id >= $first AND title_id < $end),
    shares AS (
        SELECT title_id,
               round(2 * avg(has_sub_title::INT))::INT AS sub_titles,
               round(2 * avg(has_episode::INT))::INT AS episodes,
               round(2 * avg((date IS NOT NULL)::INT))::INT AS dates,
               floor(log2(count(*)))::INT AS airings, floor(log2(count(DISTINCT channel)))::INT AS channels
        FROM own
        GROUP BY title_id
    ),
    tokens AS (
        SELECT title_id, unnest([
                   'channel:' || lower(channel),
                   'hour:' || hour(local_start), 'weekday:' || isodow(local_start),
                   'duration:' || CASE WHEN minutes BETWEEN 1 AND 1440
                       THEN [0, 10, 20, 30, 45, 60, 90, 120, 180][
                           1 + len(list_filter([8, 18, 26, 38, 53, 75, 105, 150], lambda low: minutes >= low))
                       ]::VARCHAR
                       ELSE 'unknown' END,
                   'manner:language:' || lower(title_language)
               ]) AS token
        FROM own
        UNION ALL
        SELECT title_id, 'channel:word:' || unnest(regexp_extract_all(lower(name), '\p{L}{2,}'))
        FROM own
        UNION ALL
        SELECT title_id, 'manner:' || unnest([
                   'sub-titles:' || sub_titles, 'episodes:' || episodes, 'dates:' || dates,
                   'airings:' || least(6, airings), 'channels:' || least(4, channels)
               ])
        FROM shares
        UNION ALL
        SELECT title_id, 'manner:pattern:' || pattern
        FROM own
        WHERE pattern IS NOT NULL
        GROUP BY title_id, pattern
        HAVING 2 * count(*) > (SELECT count(*) FROM own AS others WHERE others.title_id = own.title_id)
    )
    SELECT DISTINCT title_id, split_part(token, ':', 1) AS kind, token
    FROM tokens
    WHERE list_contains($kinds, split_part(token, ':', 1)) OR token LIKE 'manner:pattern:%'
    ORDER BY title_id, kind, token
"""


def write_context_counts(contexts: Path, titles: Path, path: Path) -> None:
    """Counts the context tokens of training titles: kind, token, term_frequency, document_frequency.

    ``contexts`` is from ``write_contexts``; row i of ``titles`` is title i, with its ``split``.
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
    with temporary_database(path.parent) as connection:
        counted = connection.sql(query, params=[escape_glob(contexts), escape_glob(titles)])
        counted.write_parquet(str(path), compression="zstd")
