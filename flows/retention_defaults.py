"""Defaults of the flow and the command ``gc``. Imports nothing, so that ``guidespace --help`` stays fast."""

NIGHTS = 7  # number of artifacts of each kind, and of models for a rollback, to keep
DAYS = 90  # to keep runs in MLflow and Prefect
HISTORY_DAYS = 365  # to keep replaced versions of programmes in the catalogue
