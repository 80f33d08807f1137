"""Deployments of the flows on a Prefect server, backups, and the model that MLflow serves."""
