"""Defines the settings of an ablation."""

from typing import Literal

from tasks.form import configurable, setting
from tasks.pool_settings import AUTOMATIC
from tasks.scoring.folds import SALTS

_BLOCKS_DESCRIPTION = (
    "Blocks to measure: names, patterns, or changes such as train.optimizer=adam; empty: all blocks"
)
_WORKERS_DESCRIPTION = "Number of training processes; -1: one per core"
_POOL_DESCRIPTION = "Where the training processes run; dask and ray require the extra of the same name"
_ADDRESS_DESCRIPTION = (
    "Address of a Dask scheduler or Ray cluster, whose workers must mount the home; empty: start one on this "
    "machine"
)


@configurable
class AblationSettings:
    """Settings of an ablation: the blocks to remove, and the number of trials of each block."""

    blocks: tuple[str, ...] = setting((), _BLOCKS_DESCRIPTION)
    seeds: int = setting(
        3, "Number of trainings, with different seeds, of each block on each fold", ge=1, le=100
    )
    folds: int = setting(
        5, "Number of splits of the guide into training and held-out titles", ge=1, le=len(SALTS)
    )
    resamples: int = setting(
        1000, "Number of bootstrap resamples of families for each confidence interval", ge=100
    )
    workers: int = setting(AUTOMATIC, _WORKERS_DESCRIPTION, ge=AUTOMATIC, le=256)
    pool: Literal["processes", "dask", "ray"] = setting("processes", _POOL_DESCRIPTION)
    pool_address: str = setting("", _ADDRESS_DESCRIPTION)


ABLATION = AblationSettings()
