"""Defines default values and names that flows, commands and deployments share.

This file imports nothing, so that ``guidespace --help`` stays fast.
"""

DEFAULT_HOME = "guidespace-home"  # folder of the home
WORK_POOL = "guidespace"  # Prefect work pool of the deployments
RUN_TAG = "guidespace"  # Prefect tag of the runs of the deployments (deployments/prefect.yaml)

# Maximum seconds that a run waits for another run in the same home.
WAIT_SECONDS = 6 * 3600.0
HOURLY_WAIT_SECONDS = 3000.0  # for flows whose schedule starts a run every hour
GC_WAIT_SECONDS = 3600.0

# Data that `gc` does not remove.
NIGHTS = 7  # number of newest artifacts of each kind, and of models for a rollback
DAYS = 90  # age of runs in MLflow and Prefect
HISTORY_DAYS = 365  # time since a version of a programme was replaced in the catalogue
MAX_DAYS = 36_500  # upper bound of DAYS and HISTORY_DAYS; Python has no dates before the year 1
