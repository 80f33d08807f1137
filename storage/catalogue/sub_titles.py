"""Sub-titles of the catalogue and their patterns (schema/0008_sub_title_patterns.sql)."""

import pyarrow as pa

from storage.catalogue.connection import Catalogue, transaction

PATTERNS = pa.schema({"sub_title": pa.string(), "pattern": pa.string(), "probability": pa.float32()})


def read_sub_titles(catalogue: Catalogue) -> pa.Table:
    """Returns the distinct sub-titles, sorted, and how many programmes have each: sub_title, programmes."""
    return catalogue.connection.sql("""
        SELECT sub_title, count(*) AS programmes
        FROM programmes
        WHERE sub_title IS NOT NULL AND sub_title != ''
        GROUP BY sub_title
        ORDER BY sub_title
    """).to_arrow_table()


def write_patterns(catalogue: Catalogue, rows: pa.Table) -> None:
    """Replaces all stored patterns by ``rows`` of PATTERNS. Sub-titles without a pattern have no row."""
    patterns = rows.cast(PATTERNS)
    with transaction(catalogue.connection):
        catalogue.connection.execute("DELETE FROM sub_title_patterns")
        catalogue.connection.register("new_patterns", patterns)
        catalogue.connection.execute("INSERT INTO sub_title_patterns FROM new_patterns")
        catalogue.connection.unregister("new_patterns")
