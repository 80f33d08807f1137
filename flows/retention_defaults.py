"""Defines how much data the flow and the command ``gc`` keep by default.

This file imports nothing, so that ``guidespace --help`` stays fast.
"""

NIGHTS = 7  # number of artifacts of each kind, and of models for a rollback, that are kept
DAYS = 90  # number of days for which runs in MLflow and Prefect are kept
HISTORY_DAYS = 365  # number of days for which replaced versions of programmes are kept in the catalogue
MAX_DAYS = 36_500  # maximum of DAYS and HISTORY_DAYS; Python has no dates before the year 1
