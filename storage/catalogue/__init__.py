"""The DuckDB catalogue. No other package imports DuckDB."""
