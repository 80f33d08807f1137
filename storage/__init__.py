"""WHERE things are: artifacts on disk, the DuckDB catalogue, embedding tables, MLflow. Imports nothing of ours."""
