"""Defaults of the flow and the command ``gc``. Imports nothing, so that ``guidespace --help`` stays fast."""

NIGHTS = 7  # artifacts of each kind, and models for a rollback
DAYS = 90  # runs in MLflow and Prefect
HISTORY_DAYS = 365  # replaced versions of programmes in the catalogue
