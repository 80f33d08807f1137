"""Deploys the flows on a Prefect server, backs up a home, and defines the model that MLflow serves."""
