"""Artifacts, the DuckDB catalogue, embedding tables, MLflow. Imports nothing of ours."""
