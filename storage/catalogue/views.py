"""Creates DuckDB views of the Parquet files that a nightly run has written, and runs users' queries.

docs/sql.md has the columns and example queries. The views read the files and neither copy nor lock them.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from storage.catalogue.connection import escape_glob, escape_quotes
from storage.errors import ExpectedError
from storage.formats.programme_kinds import TITLES_FILE

# Query of a Parquet file of the Corpus, whose rows are in the order of title ids.
_TITLES_QUERY = (
    "SELECT file_row_number AS title_id, * EXCLUDE (file_row_number) "
    "FROM read_parquet('{{corpus}}/{}', file_row_number = true)"
)
VIEWS = {
    "programmes": "FROM '{guide}/programmes.parquet'",
    "channels": "FROM '{guide}/channels.parquet'",
    "titles": _TITLES_QUERY.format("titles.parquet"),
    "kinds": _TITLES_QUERY.format(TITLES_FILE),
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
# Hashes the name of a viewer as storage/catalogue/likes.py does; contains the secret salt of the home.
_TONIGHT_OF_MACRO = """
    CREATE MACRO tonight_of(name) AS TABLE
    SELECT * EXCLUDE viewer
    FROM tonight
    WHERE viewer = left(sha256('{salt}' || trim(nfc_normalize(name))), 32)
"""


class QueryError(ExpectedError, ValueError):
    """Error: DuckDB cannot run a user's SQL query. The message contains the error of DuckDB."""


def view_statements(folders: Mapping[str, Path]) -> str:
    """Returns the CREATE VIEW statements of all views, one per line.

    Args:
        folders: Folders of the artifacts guide, corpus, nearest, clustering and, if it exists, tonight.
    """
    with duckdb.connect() as connection:
        return "\n".join(_create_views(connection, folders).values())


def _unavailable_views(folders: Mapping[str, Path]) -> dict[str, str]:
    """Returns a message for the user for each view that cannot be created, by name of the view."""
    reasons = {}
    if "tonight" not in folders:
        reasons["tonight"] = "no viewer has recommendations yet; run the flow `recommend` (docs/tonight.md)"
    if not (folders["corpus"] / TITLES_FILE).exists():
        reasons["kinds"] = (
            "the last run was made by an older version, which did not write the data of the view kinds; "
            "run `guidespace nightly --feed …` again"
        )
    return reasons


def _create_views(connection: duckdb.DuckDBPyConnection, folders: Mapping[str, Path]) -> dict[str, str]:
    """Creates all views whose files exist, and returns their CREATE VIEW statements by name of the view."""
    paths = {name: escape_quotes(escape_glob(folder)) for name, folder in folders.items()}
    statements: dict[str, str] = {}
    for name, select_query in VIEWS.items():
        if name in _unavailable_views(folders):
            continue
        statements[name] = f"CREATE OR REPLACE VIEW {name} AS {select_query.format(**paths)};"
        connection.execute(statements[name])
    return statements


def run_query(
    folders: Mapping[str, Path], query: str, values: Mapping[str, Any] | None = None, salt: str = ""
) -> tuple[list[str], list[tuple]]:
    """Runs a user's SQL query on the views.

    Args:
        folders: Folders of the artifacts guide, corpus, nearest, clustering and, if it exists, tonight.
        query: SQL query.
        values: Values of the query's parameters ``$name``, by name.
        salt: Salt of the home. If not empty, queries may use ``tonight_of('NAME')``, the rows of the view
            ``tonight`` for the viewer NAME.

    Returns:
        The names of the columns, and the rows of the result.

    Raises:
        QueryError: DuckDB cannot run the query.
    """
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute("SET enable_progress_bar = false")  # the bar would mix with the output of commands
        try:
            _create_views(connection, folders)
            if salt and "tonight" in folders:
                connection.execute(_TONIGHT_OF_MACRO.format(salt=escape_quotes(salt)))
            result = connection.execute(query, dict(values) if values else None)
            if result is None:  # an empty query
                raise QueryError("the query is empty")
            return [column[0] for column in result.description or []], result.fetchall()
        except duckdb.Error as error:
            for name, message in _unavailable_views(folders).items():
                if re.search(rf"(?i)\b{name}(_of)?\b", query):
                    raise QueryError(message) from error
            raise QueryError(f"{error}\nviews: {', '.join(VIEWS)}; docs/sql.md has their columns") from error
