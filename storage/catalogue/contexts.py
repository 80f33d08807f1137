"""Where and how each title airs, as tokens: channel, hour, weekday, duration, manner. None derives from a category.

Aggregated over a title's airings; those of the next period count only for the titles that belong to it, and no airing
before it counts for those: training sees nothing of what comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa


def title_contexts(guide: Path, variants: pa.Table, later: Sequence[int], cut: int | None, kinds: Sequence[str]) -> pa.Table:
    """Context tokens of each title.

    Args:
        guide: Folder of a Guide.
        variants: raw_title, title_id.
        later: Titles of the next period.
        cut: Where it begins, microseconds since 1970; None where there is none.
        kinds: Which kinds to make, of ``channel``, ``hour``, ``weekday``, ``duration``, ``manner``.

    Returns:
        title_id, kind, token; distinct, sorted. A token begins with its kind: ``hour:20``.
    """
    with duckdb.connect() as connection:
        connection.register("variants", variants)
        connection.register("later", pa.table({"title_id": pa.array(later, pa.int32())}))
        return connection.sql(
            r"""
            WITH names AS (
                SELECT source, channel, min(name) AS name
                FROM read_parquet($channels)
                GROUP BY source, channel
            ),
            airings AS (
                SELECT title_id, channel, name, start, title_language, date,
                       date_diff('minute', start, stop) AS minutes,
                       sub_title IS NOT NULL AS has_sub_title,
                       coalesce(len(episode_numbers), 0) > 0 AS has_episode
                FROM read_parquet($programmes) AS programmes
                JOIN variants ON raw_title = title
                LEFT JOIN names USING (source, channel)
                WHERE $cut IS NULL OR (epoch_us(start) >= $cut) = (title_id IN (SELECT title_id FROM later))
            ),
            shares AS (
                SELECT title_id, avg(has_sub_title::INT) AS sub_titles, avg(has_episode::INT) AS episodes, avg((date IS NOT NULL)::INT) AS dates, count(*) AS airings,
                       count(DISTINCT channel) AS channels
                FROM airings
                GROUP BY title_id
            ),
            tokens AS (
                SELECT title_id, 'channel' AS kind, 'channel:' || lower(channel) AS token FROM airings
                UNION ALL
                SELECT title_id, 'channel', 'channel:word:' || unnest(regexp_extract_all(lower(name), '\p{L}{2,}')) FROM airings
                UNION ALL
                SELECT title_id, 'hour', 'hour:' || hour(start) FROM airings
                UNION ALL
                SELECT title_id, 'weekday', 'weekday:' || isodow(start) FROM airings
                UNION ALL
                SELECT title_id, 'duration', 'duration:' || CASE WHEN minutes IS NULL OR minutes <= 0 OR minutes > 1440 THEN 'unknown'
                       WHEN minutes < 8 THEN '0' WHEN minutes < 18 THEN '10' WHEN minutes < 26 THEN '20' WHEN minutes < 38 THEN '30' WHEN minutes < 53 THEN '45'
                       WHEN minutes < 75 THEN '60' WHEN minutes < 105 THEN '90' WHEN minutes < 150 THEN '120' ELSE '180' END
                FROM airings
                UNION ALL
                SELECT title_id, 'manner', 'manner:language:' || lower(title_language) FROM airings WHERE title_language IS NOT NULL
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
            params={"programmes": str(guide / "programmes.parquet"), "channels": str(guide / "channels.parquet"), "cut": cut, "kinds": list(kinds)},
        ).to_arrow_table()
