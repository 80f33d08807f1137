"""The DuckDB catalogue, and the only code that imports DuckDB."""
