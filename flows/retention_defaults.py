"""Defines how much data the flow and the command ``gc`` keep by default.

This file imports nothing, so that ``guidespace --help`` stays fast.
"""

NIGHTS = 7  # number of artifacts of each kind, and of models for a rollback, to keep
DAYS = 90  # days to keep runs in MLflow and Prefect
HISTORY_DAYS = 365  # days to keep replaced versions of programmes in the catalogue
MAX_DAYS = 36_500  # maximum of DAYS and HISTORY_DAYS; Python has no dates before the year 1
