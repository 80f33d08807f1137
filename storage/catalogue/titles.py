"""What a Guide snapshot says of titles: who airs when, under which categories. Reads published Parquet, never the writer's file.

One join of programmes with titles, on disk and in the order of titles, answers all; so that what is asked of a run of titles reads that run alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from storage.catalogue.bounded import bounded
from storage.catalogue.paths import parquet

ROWS = 1 << 18  # of a result in memory at a time


class Airings:
    """The airings of a Guide's titles; made by ``open_airings``."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def categories(self) -> Iterator[tuple[str, str, np.ndarray]]:
        """Raw categories of titles, by feed: source, category and int32 rising titles; sorted. A long run comes in several parts."""
        reader: Any = self._connection.sql(
            """
            SELECT DISTINCT source, category, title_id
            FROM (
                SELECT source, title_id, unnest(categories) AS category
                FROM airings
            )
            WHERE category IS NOT NULL
            ORDER BY source, category, title_id
            """
        ).to_arrow_reader(ROWS)
        for batch in reader:
            source, category = (batch.column(place).dictionary_encode() for place in (0, 1))
            titles = batch.column(2).to_numpy()
            codes = source.indices.to_numpy() * np.int64(len(category.dictionary)) + category.indices.to_numpy()
            for begin, end in itertools.pairwise([*np.flatnonzero(np.diff(codes, prepend=-1)).tolist(), len(titles)]):
                yield source[begin].as_py(), category[begin].as_py(), titles[begin:end]

    def titles_by_source(self) -> dict[str, int]:
        """Number of distinct titles a feed airs, placeholders included."""
        return dict(self._connection.execute("SELECT source, count(*) FROM (SELECT DISTINCT source, title_id FROM airings) GROUP BY source").fetchall())

    def channels(self, begin: int, end: int, limit: int = 12) -> pa.Table:
        """Display names of the channels that air each of the titles begin to end (that one left out), most airings first.

        Returns:
            title_id, channels (list of at most ``limit`` names); sorted by title_id.
        """
        return self._connection.sql(
            """
            WITH counted AS (
                SELECT title_id, coalesce(names.name, airings.channel) AS name, count(*) AS airings
                FROM airings
                LEFT JOIN names USING (source, channel)
                WHERE title_id >= $begin AND title_id < $end
                GROUP BY ALL
            )
            SELECT title_id, list(name ORDER BY airings DESC, name)[1:$limit] AS channels
            FROM counted
            GROUP BY title_id
            ORDER BY title_id
            """,
            params={"begin": begin, "end": end, "limit": limit},
        ).to_arrow_table()

    def days(self, begin: int, end: int, limit: int = 14) -> pa.Table:
        """Days (UTC) on which each of the titles begin to end (that one left out) airs, the latest ``limit`` of them.

        Returns:
            title_id, days (list of "2025-03-01", rising); sorted by title_id.
        """
        return self._connection.sql(
            """
            WITH aired AS (
                SELECT DISTINCT title_id, strftime(start, '%Y-%m-%d') AS day
                FROM airings
                WHERE title_id >= $begin AND title_id < $end
            )
            SELECT title_id, list(day ORDER BY day)[-$limit:] AS days
            FROM aired
            GROUP BY title_id
            ORDER BY title_id
            """,
            params={"begin": begin, "end": end, "limit": limit},
        ).to_arrow_table()

    def times(self, begin: int, end: int, limit: int) -> pa.Table:
        """When and where each of the titles begin to end (that one left out) airs: the latest ``limit`` times.

        Returns:
            title_id, minutes (list of minutes since 1970, UTC, rising), names (list: the channel of each).
        """
        return self._connection.sql(
            """
            WITH aired AS (
                SELECT DISTINCT title_id,
                       epoch_us(start) // 60_000_000 AS minute,
                       coalesce(names.name, airings.channel) AS name
                FROM airings
                LEFT JOIN names USING (source, channel)
                WHERE title_id >= $begin AND title_id < $end
            )
            SELECT title_id,
                   list(minute ORDER BY minute, name)[-$limit:] AS minutes,
                   list(name ORDER BY minute, name)[-$limit:] AS names
            FROM aired
            GROUP BY title_id
            ORDER BY title_id
            """,
            params={"begin": begin, "end": end, "limit": limit},
        ).to_arrow_table()


@contextmanager
def open_airings(guide: Path, variants: Path, folder: Path) -> Iterator[Airings]:
    """Joins on disk, in bounded memory.

    Args:
        guide: Folder of a Guide.
        variants: Parquet of raw_title, title_id.
        folder: For what does not fit in memory; gone afterwards.
    """
    with bounded(folder) as connection:
        connection.execute(
            """
            CREATE TABLE airings AS
            SELECT title_id, source, channel, start, categories
            FROM read_parquet($programmes)
            JOIN read_parquet($variants) ON raw_title = title
            ORDER BY title_id
            """,
            {"programmes": parquet(guide / "programmes.parquet"), "variants": parquet(variants)},
        )
        connection.execute("CREATE TABLE names AS SELECT source, channel, min(name) AS name FROM read_parquet(?) GROUP BY source, channel", [parquet(guide / "channels.parquet")])
        yield Airings(connection)
