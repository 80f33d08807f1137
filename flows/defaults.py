"""Defines default values and names that flows, commands and deployments share.

This file imports nothing, so that ``guidespace --help`` stays fast.
"""

DEFAULT_HOME = "guidespace-home"  # folder of the home

# What `gc` keeps.
NIGHTS = 7  # number of artifacts of each kind, and of models for a rollback, that are kept
DAYS = 90  # number of days for which runs in MLflow and Prefect are kept
HISTORY_DAYS = 365  # number of days for which replaced versions of programmes are kept in the catalogue
MAX_DAYS = 36_500  # maximum of DAYS and HISTORY_DAYS; Python has no dates before the year 1
