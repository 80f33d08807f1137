"""``guidespace up``: Prefect's server, a worker and MLflow's server on one machine, for one home."""
