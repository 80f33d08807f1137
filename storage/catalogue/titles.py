"""Reads the descriptions and airings of titles from the Parquet files of a guide."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from storage.catalogue.connection import Connection, escape_glob
from storage.catalogue.local_time import JOIN_OFFSETS, UTC_OFFSETS

BATCH_ROWS = 1 << 18  # rows of a query result that are in memory at once


def write_descriptions(
    connection: Connection,
    guide: Path,
    variants: Path,
    path: Path,
    characters: int,
    *,
    sub_titles: bool = False,
) -> None:
    """Writes the distinct descriptions of each title and, if requested, its sub-titles to a Parquet file.

    The columns are title_id, description and airings. Rows are sorted by title, then descriptions before
    sub-titles, then by descending airings.

    Args:
        connection: Temporary database.
        guide: Folder with the Parquet files of a Guide.
        variants: Parquet file with raw_title (as in the feed) and title_id.
        path: The file to write.
        characters: Length to which descriptions are truncated.
        sub_titles: Whether to add sub-titles as further descriptions.
    """
    texts = "SELECT title, description AS text, airings, 0 AS rank FROM read_parquet($descriptions)"
    values = {"characters": characters, "variants": escape_glob(variants)}
    values["descriptions"] = escape_glob(guide / "descriptions.parquet")
    if sub_titles:
        values["programmes"] = escape_glob(guide / "programmes.parquet")
        texts += """
            UNION ALL
            SELECT title, sub_title, count(*), 1 FROM read_parquet($programmes)
            WHERE sub_title IS NOT NULL
            GROUP BY title, sub_title
        """
    query = f"""
        SELECT title_id, left(text, $characters) AS description, sum(airings)::BIGINT AS airings
        FROM ({texts}) AS texts
        JOIN read_parquet($variants) ON raw_title = texts.title
        GROUP BY title_id, rank, description
        ORDER BY title_id, rank, airings DESC, description
    """
    connection.sql(query, params=values).write_parquet(str(path), compression="zstd")


def create_airings(
    connection: Connection, table: str, columns: str, programmes: Path, variants: Path
) -> None:
    """Creates a table of airings, sorted by title, so that a query for some titles reads a part of it.

    Args:
        connection: Temporary database.
        table: Name of the new table.
        columns: SQL expressions to select besides title_id, source, channel, local_start and categories.
        programmes: Parquet file of programmes.
        variants: Parquet file with raw_title (as in the feed) and title_id.
    """
    query = f"""
        CREATE TABLE {table} AS
        WITH {UTC_OFFSETS}
        SELECT title_id, source, channel, start + utc_offset AS local_start, categories, {columns}
        FROM read_parquet($programmes) AS programmes
        {JOIN_OFFSETS}
        JOIN read_parquet($variants) ON raw_title = title
        ORDER BY title_id
    """
    connection.execute(query, {"programmes": escape_glob(programmes), "variants": escape_glob(variants)})


class Airings:
    """Queries about the airings of titles, which are stored in a table on disk with one row per airing.

    Args:
        connection: Temporary database.
        guide: Folder with the Parquet files of a Guide.
        variants: Parquet file with raw_title (as in the feed) and title_id.
    """

    def __init__(self, connection: Connection, guide: Path, variants: Path) -> None:
        self.connection = connection
        create_airings(connection, "airings", "start", guide / "programmes.parquet", variants)
        query = """
            CREATE TABLE names AS
            SELECT source, channel, min(name) AS name
            FROM read_parquet(?)
            GROUP BY source, channel
        """
        connection.execute(query, [escape_glob(guide / "channels.parquet")])

    def categories(self) -> Iterator[tuple[str, str, np.ndarray]]:
        """Yields (source, category, title ids) in sorted order; title ids are int32 (any,).

        If a category has many titles, it is yielded several times.
        """
        reader: Any = self.connection.sql("""
            SELECT DISTINCT source, category, title_id
            FROM (SELECT source, title_id, unnest(categories) AS category FROM airings)
            WHERE category IS NOT NULL
            ORDER BY source, category, title_id
        """).to_arrow_reader(BATCH_ROWS)
        for batch in reader:
            source, category = (batch.column(index).dictionary_encode() for index in (0, 1))
            titles = batch.column(2).to_numpy()
            codes = source.indices.to_numpy() * np.int64(len(category.dictionary))
            codes += category.indices.to_numpy()
            begins = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
            for begin, end in itertools.pairwise([*begins, len(titles)]):
                yield source[begin].as_py(), category[begin].as_py(), titles[begin:end]

    def titles_by_source(self) -> dict[str, int]:
        """Returns the number of distinct titles of each source (feed), including placeholder titles."""
        query = "SELECT source, count(*) FROM (SELECT DISTINCT source, title_id FROM airings) GROUP BY source"
        return dict(self.connection.execute(query).fetchall())  # count(DISTINCT …) cannot spill

    def channels(self, begin: int, end: int, limit: int = 12) -> pa.Table:
        """Returns the channels of titles ``begin`` to ``end`` (exclusive): columns title_id and channels.

        The lists have at most ``limit`` display names, those with the most airings first.
        """
        lists = "list(name ORDER BY airings DESC, name)[1:$limit] AS channels"
        return self._query_lists(begin, end, limit, "coalesce(names.name, channel) AS name", lists)

    def days(self, begin: int, end: int, limit: int = 14) -> pa.Table:
        """Returns the last dates on which titles ``begin`` to ``end`` (exclusive) air: title_id and days.

        The lists have at most ``limit`` local dates such as "2026-11-27", in ascending order.
        """
        lists = "list(day ORDER BY day)[-$limit:] AS days"
        return self._query_lists(begin, end, limit, "strftime(local_start, '%Y-%m-%d') AS day", lists)

    def times(self, begin: int, end: int, limit: int) -> pa.Table:
        """Returns the last ``limit`` airings of titles ``begin`` to ``end`` (exclusive).

        Columns: title_id, minutes (starts, in minutes since 1970, UTC) and names (channels of these airings).
        """
        values = "epoch_us(start) // 60_000_000 AS minute, coalesce(names.name, channel) AS name"
        last_values = "list({0} ORDER BY minute, name)[-$limit:] AS {0}s".format
        lists = f"{last_values('minute')}, {last_values('name')}"
        return self._query_lists(begin, end, limit, values, lists)

    def _query_lists(self, begin: int, end: int, limit: int, values: str, lists: str) -> pa.Table:
        query = f"""
            WITH distinct_values AS (
                SELECT title_id, {values}, count(*) AS airings
                FROM airings
                LEFT JOIN names USING (source, channel)
                WHERE title_id >= $begin AND title_id < $end
                GROUP BY ALL
            )
            SELECT title_id, {lists}
            FROM distinct_values
            GROUP BY title_id
            ORDER BY title_id
        """
        params = {"begin": begin, "end": end, "limit": limit}
        return self.connection.sql(query, params=params).to_arrow_table()
