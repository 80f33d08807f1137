"""Artifacts, the DuckDB catalogue, embedding tables and MLflow; imports none of our other packages."""
