"""Settings of an ablation."""

from typing import Literal

from tasks.form import configurable, setting
from tasks.pool import AUTOMATIC
from tasks.scoring.folds import SALTS

_BLOCKS = "Blocks by name or pattern, or a change such as train.optimizer=adam; empty: all"
_WORKERS = "Processes that train; -1: one a core"
_POOL = "Where they run (dask and ray: extras of those names)"
_ADDRESS = "Address of a Dask scheduler or Ray cluster; empty starts one here. Workers must mount the home"


@configurable
class AblationSettings:
    """Which blocks are taken away, and how often each is tried."""

    blocks: tuple[str, ...] = setting((), _BLOCKS)
    seeds: int = setting(3, "Trainings of each block on each fold", ge=1, le=100)
    folds: int = setting(5, "Splits of the guide into training and held-out titles", ge=1, le=len(SALTS))
    resamples: int = setting(1000, "Bootstrap resamples of families behind each interval", ge=100)
    workers: int = setting(AUTOMATIC, _WORKERS, ge=AUTOMATIC, le=256)
    pool: Literal["processes", "dask", "ray"] = setting("processes", _POOL)
    pool_address: str = setting("", _ADDRESS)


ABLATION = AblationSettings()
