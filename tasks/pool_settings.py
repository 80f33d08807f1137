"""Defines the settings of pools of workers (pool.py), apart from the pools, which the served model lacks."""

from typing import Literal

from storage.cores import cores
from tasks.form import configurable, setting

AUTOMATIC = -1  # setting value with which the program chooses the number of workers
_WORKERS = "Number of worker processes; 0: the process of the run; -1: chosen by the stage (docs/machines.md)"
_POOL = "Where pieces are computed; dask and ray need the optional dependencies of that name"
_ADDRESS = "Address of a Dask scheduler or Ray cluster; empty: start a local one. Workers must mount the home"


@configurable
class PoolSettings:
    """Settings of stages that compute pieces of their work in a pool; results do not depend on them."""

    workers: int = setting(AUTOMATIC, _WORKERS, ge=AUTOMATIC, le=256, keyed=False)
    pool: Literal["processes", "dask", "ray"] = setting("processes", _POOL, keyed=False)
    pool_address: str = setting("", _ADDRESS, keyed=False)

    def count_workers(self, *, automatic: int) -> int:
        """Returns the number of workers. If it is automatic, processes are ``automatic`` many, others one per
        core.
        """
        if self.workers != AUTOMATIC:
            return self.workers
        return automatic if self.pool == "processes" else cores()
