"""Titles of a Guide: the distinct raw ones, their shows, and how they air. Reads published Parquet only."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from storage.catalogue.connection import escape_glob, temporary_database
from storage.catalogue.local_time import JOIN_OFFSETS, UTC_OFFSETS

ROWS = 1 << 18  # of a result in memory at a time


def write_raw_titles(guide: Path, path: Path, group_rows: int) -> None:
    """Writes the distinct raw titles of a Guide folder, sorted, in row groups of ``group_rows``.

    Columns: raw_title, airings, first_airing and last_airing (microseconds since 1970, UTC), language (the
    most frequent code).
    """
    query = """
        SELECT title AS raw_title, sum(airings)::BIGINT AS airings,
               epoch_us(min(first)) AS first_airing, epoch_us(max(last)) AS last_airing,
               arg_min(code, (-airings, code)) FILTER (code IS NOT NULL) AS language
        FROM (
            SELECT title, title_language AS code, count(*) AS airings, min(start) AS first, max(start) AS last
            FROM read_parquet(?)
            WHERE title IS NOT NULL
            GROUP BY title, title_language
        )
        GROUP BY title
        ORDER BY title
    """
    with temporary_database(path.parent) as connection:
        titles = connection.sql(query, params=[escape_glob(guide / "programmes.parquet")])
        titles.write_parquet(str(path), compression="zstd", row_group_size=group_rows)


def write_shows(parsed: Sequence[Path], shows: Path, variants: Path) -> None:
    """Groups raw titles by show key; a show is called by its most aired raw title, then the shorter, then the
    later one in the alphabet.

    Args:
        parsed: Files of raw titles with display, show_key, family and placeholder, sorted by raw title over
            all of them.
        shows: Where to write one row per show, sorted by show key: title, raw_title, show_key, family,
            language, airings, first_airing, last_airing, placeholder. Row i is title i.
        variants: Where to write raw_title, title_id, sorted by title_id and raw title.
    """
    with temporary_database(shows.parent) as connection:
        connection.execute("CREATE TABLE parsed AS FROM read_parquet(?)", [[*map(escape_glob, parsed)]])
        connection.execute("""
            CREATE TABLE shows AS
            SELECT row_number() OVER (ORDER BY show_key) - 1 AS title_id, show_key,
                   sum(airings)::BIGINT AS airings, min(first_airing) AS first_airing,
                   max(last_airing) AS last_airing, bool_and(placeholder) AS placeholder
            FROM parsed
            GROUP BY show_key
        """)
        connection.sql("""
            SELECT display AS title, raw_title, show_key, family, language,
                   shows.airings, shows.first_airing, shows.last_airing, shows.placeholder
            FROM shows
            JOIN (
                SELECT show_key, display, raw_title, family, language
                FROM parsed
                QUALIFY row_number() OVER (
                    PARTITION BY show_key
                    ORDER BY airings DESC, length(raw_title), raw_title DESC
                ) = 1
            ) USING (show_key)
            ORDER BY title_id
        """).write_parquet(str(shows), compression="zstd")
        connection.sql("""
            SELECT raw_title, title_id::INT AS title_id
            FROM parsed
            JOIN shows USING (show_key)
            ORDER BY title_id, raw_title
        """).write_parquet(str(variants), compression="zstd")


def write_descriptions(
    guide: Path, variants: Path, path: Path, characters: int, *, sub_titles: bool = False
) -> None:
    """Writes the distinct descriptions of each title, those of all its raw titles together, and behind them
    its sub-titles where these are asked for.

    Columns: title_id, description (its first ``characters``), airings; sorted by title, most airings first.
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
    with temporary_database(path.parent) as connection:
        connection.sql(query, params=values).write_parquet(str(path), compression="zstd")


def category_lists(guide: Path, variants: Path, folder: Path) -> list[tuple[int, list[str]]]:
    """Titles of a Guide that have categories, and the list of categories that most of their airings have; of
    two as frequent the shorter, then the first in the alphabet. Temporary files go to ``folder``.
    """
    query = """
        SELECT title_id, arg_min(categories, (-airings, len(categories), categories))
        FROM (
            SELECT title_id, categories, count(*) AS airings
            FROM read_parquet(?)
            JOIN read_parquet(?) ON raw_title = title
            WHERE len(categories) > 0
            GROUP BY title_id, categories
        )
        GROUP BY title_id
        ORDER BY title_id
    """
    with temporary_database(folder) as connection:
        files = [escape_glob(guide / "programmes.parquet"), escape_glob(variants)]
        return connection.execute(query, files).fetchall()


@dataclass(frozen=True)
class Airings:
    """The airings of a Guide's titles; made by ``open_airings``."""

    connection: duckdb.DuckDBPyConnection

    def categories(self) -> Iterator[tuple[str, str, np.ndarray]]:
        """Raw categories by feed, sorted: source, category, int32 ids of titles (many in several parts)."""
        reader: Any = self.connection.sql("""
            SELECT DISTINCT source, category, title_id
            FROM (SELECT source, title_id, unnest(categories) AS category FROM airings)
            WHERE category IS NOT NULL
            ORDER BY source, category, title_id
        """).to_arrow_reader(ROWS)
        for batch in reader:
            source, category = (batch.column(place).dictionary_encode() for place in (0, 1))
            titles = batch.column(2).to_numpy()
            codes = source.indices.to_numpy() * np.int64(len(category.dictionary))
            codes += category.indices.to_numpy()
            begins = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
            for begin, end in itertools.pairwise([*begins, len(titles)]):
                yield source[begin].as_py(), category[begin].as_py(), titles[begin:end]

    def titles_by_source(self) -> dict[str, int]:
        """Number of distinct titles of each feed, placeholders included."""
        query = "SELECT source, count(*) FROM (SELECT DISTINCT source, title_id FROM airings) GROUP BY source"
        return dict(self.connection.execute(query).fetchall())  # count(DISTINCT …) would not spill

    def channels(self, begin: int, end: int, limit: int = 12) -> pa.Table:
        """title_id and channels (display names, most airings first) of titles begin to end (exclusive)."""
        lists = "list(name ORDER BY airings DESC, name)[1:$limit] AS channels"
        return self._lists(begin, end, limit, "coalesce(names.name, channel) AS name", lists)

    def days(self, begin: int, end: int, limit: int = 14) -> pa.Table:
        """title_id and local days (the latest, "2025-03-01", rising) of titles begin to end (exclusive)."""
        lists = "list(day ORDER BY day)[-$limit:] AS days"
        return self._lists(begin, end, limit, "strftime(local_start, '%Y-%m-%d') AS day", lists)

    def times(self, begin: int, end: int, limit: int) -> pa.Table:
        """title_id, minutes (the latest, since 1970, rising) and names (the channel of each), likewise."""
        values = "epoch_us(start) // 60_000_000 AS minute, coalesce(names.name, channel) AS name"
        last = "list({0} ORDER BY minute, name)[-$limit:] AS {0}s".format
        lists = f"{last('minute')}, {last('name')}"
        return self._lists(begin, end, limit, values, lists)

    def _lists(self, begin: int, end: int, limit: int, values: str, lists: str) -> pa.Table:
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


@contextmanager
def open_airings(guide: Path, variants: Path, folder: Path) -> Iterator[Airings]:
    """Joins programmes with titles once, on disk, in the order of titles: a query reads its own titles only.

    ``variants`` is a Parquet file of raw_title, title_id; temporary files go to ``folder``.
    """
    with temporary_database(folder) as connection:
        query = f"""
            CREATE TABLE airings AS
            WITH {UTC_OFFSETS}
            SELECT title_id, source, channel, start, start + utc_offset AS local_start, categories
            FROM read_parquet($programmes) AS programmes
            {JOIN_OFFSETS}
            JOIN read_parquet($variants) ON raw_title = title
            ORDER BY title_id
        """
        files = {"programmes": escape_glob(guide / "programmes.parquet"), "variants": escape_glob(variants)}
        connection.execute(query, files)
        query = """
            CREATE TABLE names AS
            SELECT source, channel, min(name) AS name
            FROM read_parquet(?)
            GROUP BY source, channel
        """
        connection.execute(query, [escape_glob(guide / "channels.parquet")])
        yield Airings(connection)
