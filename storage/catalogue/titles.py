"""Reads the descriptions and airings of titles from the Parquet files of a guide."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from storage.catalogue.connection import Connection, escape_glob
from storage.catalogue.local_time import JOIN_OFFSETS, UTC_OFFSETS

BATCH_ROWS = 1 << 18  # number of rows of a query result that are in memory at once


def write_descriptions(
    connection: Connection,
    guide: Path,
    variants: Path,
    path: Path,
    characters: int,
    *,
    sub_titles: bool = False,
) -> None:
    """Writes the distinct descriptions of all titles, and their sub-titles if requested, to a Parquet file.

    The columns are title_id, description and airings (number of airings of the description). The rows of a
    title are together: first its descriptions, then its sub-titles, those with the most airings first.

    Args:
        connection: Temporary database.
        guide: Folder with the Parquet files of a Guide.
        variants: Parquet file with the columns raw_title (as in the feed) and title_id.
        path: The file to write.
        characters: Length in characters to which descriptions are truncated.
        sub_titles: Whether to add sub-titles as further descriptions.
    """
    texts_query = "SELECT title, description AS text, airings, 0 AS rank FROM read_parquet($descriptions)"
    parameters = {"characters": characters, "variants": escape_glob(variants)}
    parameters["descriptions"] = escape_glob(guide / "descriptions.parquet")
    if sub_titles:
        parameters["programmes"] = escape_glob(guide / "programmes.parquet")
        texts_query += """
            UNION ALL
            SELECT title, sub_title, count(*), 1 FROM read_parquet($programmes)
            WHERE sub_title IS NOT NULL
            GROUP BY title, sub_title
        """
    query = f"""
        SELECT title_id, left(text, $characters) AS description, sum(airings)::BIGINT AS airings
        FROM ({texts_query}) AS texts
        JOIN read_parquet($variants) ON raw_title = texts.title
        GROUP BY title_id, rank, description
        ORDER BY title_id, rank, airings DESC, description
    """
    connection.sql(query, params=parameters).write_parquet(str(path), compression="zstd")


def create_airings(
    connection: Connection, table: str, columns: str, programmes: Path, variants: Path
) -> None:
    """Creates a table of airings that is sorted by title, so that a query for some titles reads only a part.

    Args:
        connection: Temporary database.
        table: Name of the new table.
        columns: SQL of further columns; title_id, source, channel, local_start and categories are always in
            the table.
        programmes: Parquet file of programmes.
        variants: Parquet file with the columns raw_title (as in the feed) and title_id.
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
        variants: Parquet file with the columns raw_title (as in the feed) and title_id.
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
        """Yields the titles of each category of each source, as tuples (source, category, title ids).

        Tuples are sorted by source and category. Title ids are ascending, int32 (any,). If a category has
        many titles, there are several tuples with parts of its title ids.
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
            first_rows = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
            for first_row, end_row in itertools.pairwise([*first_rows, len(titles)]):
                yield source[first_row].as_py(), category[first_row].as_py(), titles[first_row:end_row]

    def titles_by_source(self) -> dict[str, int]:
        """Returns the number of distinct titles of each source (feed), including placeholder titles."""
        query = "SELECT source, count(*) FROM (SELECT DISTINCT source, title_id FROM airings) GROUP BY source"
        # unlike SELECT DISTINCT, count(DISTINCT …) cannot write to disk if the memory is full
        return dict(self.connection.execute(query).fetchall())

    def channels(self, begin: int, end: int, limit: int = 12) -> pa.Table:
        """Returns the channels of the titles with begin <= title_id < end.

        The columns are title_id and channels: lists of at most ``limit`` display names, those with the most
        airings of the title first.
        """
        lists = "list(name ORDER BY airings DESC, name)[1:$limit] AS channels"
        return self._query_lists(begin, end, limit, "coalesce(names.name, channel) AS name", lists)

    def days(self, begin: int, end: int, limit: int = 14) -> pa.Table:
        """Returns the last dates on which titles air, for the titles with begin <= title_id < end.

        The columns are title_id and days: lists of at most ``limit`` local dates such as "2026-11-27", in
        ascending order.
        """
        lists = "list(day ORDER BY day)[-$limit:] AS days"
        return self._query_lists(begin, end, limit, "strftime(local_start, '%Y-%m-%d') AS day", lists)

    def times(self, begin: int, end: int, limit: int) -> pa.Table:
        """Returns the last ``limit`` airings of each of the titles with begin <= title_id < end.

        The columns are title_id, minutes (list of the starts of the airings in minutes since 1970, UTC) and
        names (list of the channels of the airings).
        """
        values = "epoch_us(start) // 60_000_000 AS minute, coalesce(names.name, channel) AS name"
        last_values = "list({0} ORDER BY minute, name)[-$limit:] AS {0}s".format
        lists = f"{last_values('minute')}, {last_values('name')}"
        return self._query_lists(begin, end, limit, values, lists)

    def _query_lists(self, begin: int, end: int, limit: int, values: str, lists: str) -> pa.Table:
        """Returns title_id and lists of distinct values; ``values`` and ``lists`` are SQL expressions."""
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
