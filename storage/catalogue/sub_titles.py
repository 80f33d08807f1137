"""Reads the sub-titles of all programmes, and stores the pattern (kind) of each distinct sub-title."""

import pyarrow as pa

from storage.catalogue.connection import Catalogue, transaction

SUB_TITLE_PATTERNS = pa.schema(
    {"sub_title": pa.string(), "pattern": pa.string(), "probability": pa.float32()}
)


def read_sub_titles(catalogue: Catalogue) -> pa.Table:
    """Returns the distinct sub-titles, sorted, with their numbers of programmes (column ``programmes``)."""
    return catalogue.connection.sql("""
        SELECT sub_title, count(*) AS programmes
        FROM programmes
        WHERE sub_title IS NOT NULL AND sub_title != ''
        GROUP BY sub_title
        ORDER BY sub_title
    """).to_arrow_table()


def write_patterns(catalogue: Catalogue, rows: pa.Table) -> None:
    """Replaces all stored patterns (kinds of sub-titles) by ``rows``, with the schema SUB_TITLE_PATTERNS."""
    patterns = rows.cast(SUB_TITLE_PATTERNS)
    with transaction(catalogue.connection):
        catalogue.connection.execute("DELETE FROM sub_title_patterns")
        catalogue.connection.register("new_patterns", patterns)
        catalogue.connection.execute("INSERT INTO sub_title_patterns FROM new_patterns")
        catalogue.connection.unregister("new_patterns")
