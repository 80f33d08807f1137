"""Implements ``guidespace up``: Prefect's server, a worker and MLflow's server for one home."""
