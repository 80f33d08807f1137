"""Stores all TV programmes in a DuckDB database, the catalogue. No other package imports DuckDB."""
