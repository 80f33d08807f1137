"""Where and how each title airs, as tokens: channel, hour, weekday, duration, manner. None derives from a category.

Aggregated over a title's airings; those of the next period count only for the titles that belong to it, and no airing
before it counts for those: training sees nothing of what comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from storage.catalogue.bounded import bounded
from storage.catalogue.paths import parquet

TITLES = 250_000  # whose tokens are made at once: some 2.5 million rows


def write_contexts(guide: Path, variants: Path, later: Sequence[int] | np.ndarray, cut: int | None, kinds: Sequence[str], path: Path) -> None:
    """Writes the context tokens of each title: title_id, kind, token; distinct, sorted. A token begins with its kind: ``hour:20``.

    Args:
        guide: Folder of a Guide.
        variants: Parquet of raw_title, title_id.
        later: Titles of the next period.
        cut: Where it begins, microseconds since 1970; None where there is none.
        kinds: Which kinds to make, of ``channel``, ``hour``, ``weekday``, ``duration``, ``manner``.
        path: Where to write.
    """
    with bounded(path.parent) as connection:
        connection.register("later", pa.table({"title_id": pa.array(later, pa.int32())}))
        connection.execute(
            """
            CREATE TABLE airings AS
            WITH names AS (
                SELECT source, channel, min(name) AS name
                FROM read_parquet($channels)
                GROUP BY source, channel
            )
            SELECT title_id, channel, name, start, title_language, date,
                   date_diff('minute', start, stop) AS minutes,
                   sub_title IS NOT NULL AS has_sub_title,
                   coalesce(len(episode_numbers), 0) > 0 AS has_episode
            FROM read_parquet($programmes) AS programmes
            JOIN read_parquet($variants) ON raw_title = title
            LEFT JOIN names USING (source, channel)
            WHERE $cut IS NULL OR (epoch_us(start) >= $cut) = (title_id IN (SELECT title_id FROM later))
            ORDER BY title_id
            """,
            {"programmes": parquet(guide / "programmes.parquet"), "channels": parquet(guide / "channels.parquet"), "variants": parquet(variants), "cut": cut},
        )
        (titles,) = connection.sql("SELECT coalesce(max(title_id) + 1, 0) FROM airings").fetchall()[0]
        schema = pa.schema([("title_id", pa.int32()), ("kind", pa.string()), ("token", pa.string())])
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for first in range(0, titles, TITLES):  # distinct tokens of all titles at once are more than DuckDB can spill
                writer.write_table(_tokens(connection, first, first + TITLES, kinds).cast(schema))


def _tokens(connection: duckdb.DuckDBPyConnection, first: int, end: int, kinds: Sequence[str]) -> pa.Table:
    """Context tokens of some titles."""
    return connection.sql(
        r"""
        WITH own AS (
            SELECT *
            FROM airings
            WHERE title_id >= $first AND title_id < $end
        ),
        shares AS (
            SELECT title_id, avg(has_sub_title::INT) AS sub_titles, avg(has_episode::INT) AS episodes, avg((date IS NOT NULL)::INT) AS dates, count(*) AS airings,
                   count(DISTINCT channel) AS channels
            FROM own
            GROUP BY title_id
        ),
        tokens AS (
            SELECT title_id, 'channel' AS kind, 'channel:' || lower(channel) AS token FROM own
            UNION ALL
            SELECT title_id, 'channel', 'channel:word:' || unnest(regexp_extract_all(lower(name), '\p{L}{2,}')) FROM own
            UNION ALL
            SELECT title_id, 'hour', 'hour:' || hour(start) FROM own
            UNION ALL
            SELECT title_id, 'weekday', 'weekday:' || isodow(start) FROM own
            UNION ALL
            SELECT title_id, 'duration', 'duration:' || CASE WHEN minutes IS NULL OR minutes <= 0 OR minutes > 1440 THEN 'unknown'
                   WHEN minutes < 8 THEN '0' WHEN minutes < 18 THEN '10' WHEN minutes < 26 THEN '20' WHEN minutes < 38 THEN '30' WHEN minutes < 53 THEN '45'
                   WHEN minutes < 75 THEN '60' WHEN minutes < 105 THEN '90' WHEN minutes < 150 THEN '120' ELSE '180' END
            FROM own
            UNION ALL
            SELECT title_id, 'manner', 'manner:language:' || lower(title_language) FROM own WHERE title_language IS NOT NULL
            UNION ALL
            SELECT title_id, 'manner', 'manner:' || unnest([
                   'sub-titles:' || round(sub_titles * 2)::INT, 'episodes:' || round(episodes * 2)::INT, 'dates:' || round(dates * 2)::INT,
                   'airings:' || least(6, floor(log2(airings)))::INT, 'channels:' || least(4, floor(log2(channels)))::INT])
            FROM shares
        )
        SELECT DISTINCT title_id, kind, token
        FROM tokens
        WHERE list_contains($kinds, kind)
        ORDER BY title_id, kind, token
        """,
        params={"first": first, "end": end, "kinds": list(kinds)},
    ).to_arrow_table()


def write_context_counts(contexts: Path, titles: Path, path: Path) -> None:
    """Counts the context tokens of training titles: kind, token, term_frequency, document_frequency.

    Args:
        contexts: What ``write_contexts`` wrote.
        titles: titles.parquet: row i is title i, ``split`` says which are for training.
        path: Where to write.
    """
    with bounded(path.parent) as connection:
        connection.sql(
            """
            SELECT kind, token, count(*) AS term_frequency, count(*) AS document_frequency
            FROM read_parquet($contexts)
            JOIN (
                SELECT file_row_number AS title_id
                FROM read_parquet($titles, file_row_number = true)
                WHERE split = 'train'
            ) USING (title_id)
            GROUP BY kind, token
            """,
            params={"contexts": parquet(contexts), "titles": parquet(titles)},
        ).write_parquet(str(path), compression="zstd")
