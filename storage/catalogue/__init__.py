"""The DuckDB catalogue: the only room that knows SQL."""
