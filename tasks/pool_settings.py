"""Defines the settings of pools of workers.

The settings are not in pool.py, because the served model needs them, but has no pools.
"""

from typing import Literal

from storage.cores import cores
from tasks.form import configurable, setting

AUTOMATIC = -1  # value of the setting ``workers`` with which the stage chooses the number of workers
_WORKERS = "Number of worker processes; 0: use the process of the run; -1: automatic (docs/machines.md)"
_POOL = "Pool that computes the pieces of the stage; dask and ray need the extra of the same name"
_ADDRESS = (
    "Address of a Dask scheduler or Ray cluster (its workers must mount the home); empty: start a local one"
)


def count_workers(workers: int) -> int:
    """Returns ``workers``, but at least 1, or the number of cores if ``workers`` is AUTOMATIC."""
    return cores() if workers == AUTOMATIC else max(1, workers)


@configurable
class PoolSettings:
    """Settings of the pool in which a stage computes its pieces. They do not change the results."""

    workers: int = setting(AUTOMATIC, _WORKERS, ge=AUTOMATIC, le=256, keyed=False)
    pool: Literal["processes", "dask", "ray"] = setting("processes", _POOL, keyed=False)
    pool_address: str = setting("", _ADDRESS, keyed=False)

    def count_workers(self, *, automatic: int) -> int:
        """Returns the number of workers.

        If ``workers`` is AUTOMATIC, returns ``automatic`` for a pool of processes, and the number of cores
        for Dask and Ray.
        """
        if self.workers != AUTOMATIC:
            return self.workers
        return automatic if self.pool == "processes" else cores()
