"""Storage: artifacts, the DuckDB catalogue, embedding tables and MLflow. Imports neither tasks nor flows."""
