"""Stores artifacts, the DuckDB catalogue, embedding tables and MLflow runs; imports no tasks or flows."""
