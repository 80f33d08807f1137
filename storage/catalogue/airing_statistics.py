"""Computes statistics of the airings of each title in a guide, such as numbers of episodes."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from storage.catalogue.connection import Connection
from storage.catalogue.episode_columns import EPISODE_COLUMNS, EpisodeReader
from storage.catalogue.titles import create_airings

BATCH_ROWS = 65_536  # programmes that are parsed at once
TITLES_PER_QUERY = 2000
_PARSED_COLUMNS = ["title", "sub_title", "episode_numbers", "episode_systems"]
_COPIED_COLUMNS = ["source", "channel", "start", "stop", "title", "sub_title", "categories", "date", "zone"]


def ensure_episode_columns(programmes: Path, path: Path) -> Path:
    """Returns the path of a Parquet file of programmes that has the columns EPISODE_COLUMNS.

    If the file ``programmes`` lacks these columns, a copy with these columns is written to ``path``.
    """
    file = pq.ParquetFile(programmes, pre_buffer=False)
    if {*EPISODE_COLUMNS} <= {*file.schema_arrow.names}:
        return programmes
    reader = EpisodeReader()
    schema = pa.schema([file.schema_arrow.field(name) for name in _COPIED_COLUMNS])
    schema = pa.schema([*schema, *(pa.field(name, pa.int32()) for name in EPISODE_COLUMNS)])
    with pq.ParquetWriter(path, schema) as writer:
        for batch in file.iter_batches(
            BATCH_ROWS, columns=list({*_PARSED_COLUMNS, *_COPIED_COLUMNS}), use_threads=False
        ):
            columns = [*(batch[name] for name in _COPIED_COLUMNS), *reader.columns(batch)]
            writer.write_table(pa.table(columns, schema=schema))
    return path


class AiringStatistics:
    """Computes statistics of the airings of all titles of a guide from a table on disk.

    Each query reads a range of titles, because counting distinct values of all titles at once would exceed
    the memory limit of the connection.

    Args:
        connection: Temporary database.
        programmes: Parquet file of programmes with the columns EPISODE_COLUMNS (``ensure_episode_columns``).
        variants: Parquet file with the columns raw_title (as in the feed) and title_id.
    """

    def __init__(self, connection: Connection, programmes: Path, variants: Path) -> None:
        self.connection = connection
        columns = "sub_title, season, episode, date, date_diff('minute', start, stop) AS minutes"
        create_airings(connection, "title_airings", columns, programmes, variants)
        query = "SELECT coalesce(max(title_id) + 1, 0) FROM title_airings"
        self.title_count: int = connection.execute(query).fetchall()[0][0]

    def by_title(self) -> pa.Table:
        """Computes statistics of each title.

        Returns:
            A table with one row per title, sorted by title_id. The columns are title_id; source and channel
            (those with the most airings); airings (their number); numbered, sub_titled and dated (numbers of
            airings with an episode number, a sub-title, a date); minutes (median duration); evening (number
            of airings that start from 18:00 to 23:59 local time); channels, days, hours, sub_titles, episodes
            and dates (numbers of distinct values).
        """
        return self._query_in_ranges("""
            SELECT title_id, mode(source ORDER BY source) AS source,
                   mode(channel ORDER BY channel) AS channel,
                   count(*) AS airings, count(episode) AS numbered,
                   count(nullif(sub_title, '')) AS sub_titled, count(nullif(date, '')) AS dated,
                   coalesce(median(minutes), 0)::FLOAT AS minutes,
                   count(*) FILTER (hour(local_start) BETWEEN 18 AND 23) AS evening,
                   count(DISTINCT channel) AS channels, count(DISTINCT local_start::DATE) AS days,
                   count(DISTINCT hour(local_start)) AS hours, count(DISTINCT sub_title) AS sub_titles,
                   count(DISTINCT (season, episode)) FILTER (episode IS NOT NULL) AS episodes,
                   count(DISTINCT date) AS dates
            FROM title_airings
            WHERE title_id >= $begin AND title_id < $end
            GROUP BY title_id
            ORDER BY title_id
        """)

    def categories(self) -> pa.Table:
        """Counts the airings of each distinct list of categories of each title.

        Returns:
            A sorted table with the columns title_id, categories (a list), numbered (whether the airings have
            an episode number) and airings (their number).
        """
        return self._query_in_ranges("""
            SELECT title_id, categories, episode IS NOT NULL AS numbered, count(*) AS airings
            FROM title_airings
            WHERE len(categories) > 0 AND title_id >= $begin AND title_id < $end
            GROUP BY ALL
            ORDER BY ALL
        """)

    def _query_in_ranges(self, query: str) -> pa.Table:
        """Runs a query for TITLES_PER_QUERY titles at a time; concatenates the results."""
        begins = range(0, max(1, self.title_count), TITLES_PER_QUERY)
        ranges = ({"begin": begin, "end": begin + TITLES_PER_QUERY} for begin in begins)
        return pa.concat_tables(
            [self.connection.sql(query, params=id_range).to_arrow_table() for id_range in ranges]
        )
