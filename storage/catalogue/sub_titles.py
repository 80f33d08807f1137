"""Sub-titles of the catalogue, and the pattern of each (schema/0008_sub_title_patterns.sql)."""

import pyarrow as pa

from storage.catalogue.connection import Catalogue, transaction

PATTERNS = pa.schema({"sub_title": pa.string(), "pattern": pa.string(), "probability": pa.float32()})


def read_sub_titles(catalogue: Catalogue) -> pa.Table:
    """Distinct sub-titles of all programmes (sub_title), and how many have each (programmes), sorted."""
    return catalogue.connection.sql("""
        SELECT sub_title, count(*) AS programmes
        FROM programmes
        WHERE sub_title IS NOT NULL AND sub_title != ''
        GROUP BY sub_title
        ORDER BY sub_title
    """).to_arrow_table()


def write_patterns(catalogue: Catalogue, rows: pa.Table) -> None:
    """Replaces the patterns by rows of ``PATTERNS``; a sub-title without one is left out of them."""
    found = rows.cast(PATTERNS)
    with transaction(catalogue.connection):
        catalogue.connection.execute("DELETE FROM sub_title_patterns")
        catalogue.connection.register("found", found)
        catalogue.connection.execute("INSERT INTO sub_title_patterns SELECT * FROM found")
        catalogue.connection.unregister("found")
