"""The published Parquet of a run as DuckDB views, for questions in SQL; docs/sql.md has columns and examples.

Views read the files of finished stages: nothing is copied and nothing is locked.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

from storage.catalogue.connection import parquet, quoted
from storage.errors import ExpectedError

VIEWS = {
    "programmes": "FROM '{guide}/programmes.parquet'",
    "channels": "FROM '{guide}/channels.parquet'",
    "titles": "SELECT row_number() OVER () - 1 AS title_id, * FROM '{corpus}/titles.parquet'",
    "clusters": "FROM '{clustering}/clusters.parquet'",
    "neighbours": "FROM '{nearest}/neighbours.parquet'",
    "vectors": "FROM '{nearest}/vectors.parquet'",
    "variants": "FROM '{corpus}/variants.parquet'",
    "airings": (
        "SELECT p.source, p.channel, c.name AS channel_name, p.start, p.stop, p.title, v.title_id, "
        "k.cluster, k.cluster_name FROM programmes p JOIN channels c USING (source, channel) "
        "JOIN variants v ON v.raw_title = p.title JOIN clusters k USING (title_id)"
    ),
    "words": "FROM '{corpus}/frequencies.parquet'",
    "dropped": "FROM '{corpus}/dropped_categories.parquet'",
    "tonight": "FROM '{tonight}/tonight.parquet'",
}
# Hashes a name as storage/catalogue/likes.py does. It holds the salt, so it is made for `ask` alone.
_OF_VIEWER = """
    CREATE MACRO tonight_of(name) AS TABLE
    SELECT * EXCLUDE viewer
    FROM tonight
    WHERE viewer = left(sha256('{salt}' || trim(nfc_normalize(name))), 32)
"""


class QueryError(ExpectedError, ValueError):
    """A query that DuckDB refuses; the message is DuckDB's."""


def view_statements(folders: Mapping[str, Path]) -> str:
    """CREATE VIEW statements, one per line; ``folders`` of guide, corpus, nearest, clustering and,
    if any, tonight.
    """
    with duckdb.connect() as connection:
        return "\n".join(_create(connection, folders).values())


def _create(connection: duckdb.DuckDBPyConnection, folders: Mapping[str, Path]) -> dict[str, str]:
    """Creates the views whose files exist (an older version wrote fewer); name to statement."""
    places = {name: quoted(parquet(folder)) for name, folder in folders.items()}
    made: dict[str, str] = {}
    for name, content in VIEWS.items():
        if name == "tonight" and name not in places:
            continue
        statement = f"CREATE OR REPLACE VIEW {name} AS {content.format(**places)};"
        with suppress(duckdb.IOException, duckdb.CatalogException):
            connection.execute(statement)
            made[name] = statement
    return made


def ask(
    folders: Mapping[str, Path], query: str, values: Mapping[str, Any] | None = None, salt: str = ""
) -> tuple[list[str], list[tuple]]:
    """Column names and rows that a query over the views gives; ``values`` are those of ``$name`` in it.

    With the home's ``salt``, ``tonight_of('NAME')`` is a viewer's part of ``tonight``.

    Raises:
        QueryError: DuckDB refuses it, or it asks for what the run's version did not write.
    """
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute("SET enable_progress_bar = false")  # it would write into what commands print
        made = _create(connection, folders)
        if salt and "tonight" in made:
            connection.execute(_OF_VIEWER.format(salt=quoted(salt)))
        try:
            found = connection.execute(query, dict(values) if values else None)
            if found is None:  # DuckDB's answer to an empty query
                raise QueryError("the query is empty")
            return [column[0] for column in found.description or []], found.fetchall()
        except duckdb.Error as error:
            absent = VIEWS.keys() - made.keys()
            if asked := sorted(name for name in absent if re.search(rf"(?i)\b{name}(_of)?\b", query)):
                if asked == ["tonight"]:
                    raise QueryError(
                        "nobody has a list yet; run the flow `recommend` (docs/tonight.md)"
                    ) from error
                raise QueryError(
                    f"the last run was made by an older version, which wrote no {', '.join(asked)}; "
                    "run `guidespace nightly --feed …` again"
                ) from error
            raise QueryError(f"{error}\nviews: {', '.join(VIEWS)}; docs/sql.md has their columns") from error
