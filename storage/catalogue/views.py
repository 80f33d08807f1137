"""The published Parquet of a run as DuckDB views, for questions in SQL: docs/sql.md has the columns and examples.

Nothing is opened for writing and nothing is copied: views read the files of finished stages, on which nobody holds a lock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from storage.catalogue.paths import parquet, quoted

# View, and what it is of the folders of a run.
VIEWS = {
    "programmes": "FROM '{guide}/programmes.parquet'",
    "channels": "FROM '{guide}/channels.parquet'",
    "titles": "SELECT row_number() OVER () - 1 AS title_id, * FROM '{corpus}/titles.parquet'",
    "clusters": "FROM '{clustering}/clusters.parquet'",
    "neighbours": "FROM '{clustering}/neighbours.parquet'",
    "vectors": "FROM '{clustering}/vectors.parquet'",
    "variants": "FROM '{corpus}/variants.parquet'",
    "airings": (
        "SELECT p.source, p.channel, c.name AS channel_name, p.start, p.stop, p.title, v.title_id, k.cluster, k.cluster_name "
        "FROM programmes p JOIN channels c USING (source, channel) JOIN variants v ON v.raw_title = p.title JOIN clusters k USING (title_id)"
    ),
    "words": "FROM '{corpus}/frequencies.parquet'",
    "dropped": "FROM '{corpus}/dropped_categories.parquet'",
}


class QueryError(ValueError):
    """A query that DuckDB refuses; the message is DuckDB's."""


def view_statements(folders: Mapping[str, Path]) -> str:
    """CREATE VIEW, a line a view.

    Args:
        folders: ``guide``, ``corpus`` and ``clustering``: where they lie.
    """
    with duckdb.connect() as connection:
        return "\n".join(_create(connection, folders)[0])


def _create(connection: duckdb.DuckDBPyConnection, folders: Mapping[str, Path]) -> tuple[list[str], list[str]]:
    """Makes the views; their statements, and the names of those whose files an older version did not write."""
    places = {name: quoted(parquet(folder)) for name, folder in folders.items()}
    made: list[str] = []
    absent: list[str] = []
    for name, what in VIEWS.items():
        statement = f"CREATE OR REPLACE VIEW {name} AS {what.format(**places)};"
        try:
            connection.execute(statement)
            made.append(statement)
        except (duckdb.IOException, duckdb.CatalogException):
            absent.append(name)
    return made, absent


def ask(folders: Mapping[str, Path], query: str, values: Mapping[str, Any] | None = None) -> tuple[list[str], list[tuple]]:
    """The answer to a query over the views: names of the columns, and rows.

    Args:
        folders: As for ``view_statements``.
        query: SQL; ``$name`` stands for a value.
        values: By name.

    Raises:
        QueryError: DuckDB refuses it, or it asks for what the run's version did not write.
    """
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute("SET enable_progress_bar = false")  # it would write into what commands print
        _, absent = _create(connection, folders)
        try:
            found = connection.execute(query, dict(values) if values else None)
            if found is None:  # what DuckDB gives for no statement at all
                raise QueryError("the query is empty")
            return [column[0] for column in found.description or []], found.fetchall()
        except duckdb.Error as error:
            if asked := [name for name in absent if re.search(rf"\b{name}\b", query, re.IGNORECASE)]:
                raise QueryError(f"the last run was made by an older version, which wrote no {', '.join(asked)}; run `guidespace nightly --feed …` again") from error
            raise QueryError(f"{error}\nviews: {', '.join(VIEWS)}; docs/sql.md has their columns") from error
