"""Defines the settings of the comparison of optimizers and of the searches over them."""

import math
from pathlib import Path
from typing import Literal

from storage.cores import cores
from tasks.form import configurable, setting
from tasks.pool_settings import AUTOMATIC
from tasks.train.settings import TrainSettings
from tasks.train.tuning.entries import entries
from tasks.train.tuning.esgd import ESGD
from tasks.train.tuning.random_search import RandomSearch
from tasks.train.tuning.space import Space

Search = ESGD | RandomSearch


@configurable
class TuningSettings:
    """Settings of tuning: optimizers, vector sizes and learning rates to compare, and searches over them."""

    optimizers: tuple[str, ...] = setting((), "Names of optimizers, or yellowfin; empty: all of them")
    sizes: tuple[int, ...] = setting((32, 128, 256), "Dimensions of the vectors; one comparison per size")
    rates: tuple[float, ...] = setting(
        (0.3, 1.0, 3.0), "Factors on each optimizer's learning rate; a search covers the range between them"
    )
    share: float = setting(0.1, "Share of the first words whose titles form the tuning set", gt=0, lt=0.5)
    searches: tuple[Search, ...] = setting((), "Searches to run instead of a comparison at all rates")
    budget: int = setting(
        0, "Budget of a search in complete trainings; 0: number of optimizers × rates", ge=0
    )
    pool: Literal["threads", "processes", "dask", "ray"] = setting(
        "threads", "Task runner of the searches; dask and ray need the extra of that name"
    )
    workers: int = setting(
        AUTOMATIC, "Workers of the pool; each trains one member; -1: one per core", ge=AUTOMATIC
    )
    pool_address: str = setting(
        "", "Address of a Dask scheduler or Ray cluster; empty: one is started on this machine"
    )

    def __post_init__(self) -> None:
        if invalid_values := [size for size in self.sizes if not 2 <= size <= 4096]:  # as in train.dim
            raise ValueError(f"sizes: {invalid_values[0]} is not a number of dimensions from 2 to 4096")
        if invalid_values := [rate for rate in self.rates if not 0 < rate < math.inf]:
            raise ValueError(f"rates: {invalid_values[0]} is not a factor above 0")

    def space(self, corpus: Path, settings: TrainSettings, size: int) -> Space:
        """Returns the search space, with its budget, for vectors of one size."""
        candidates = tuple(
            entry.for_scoring(size, self.share) for entry in entries(settings, self.optimizers)
        )
        pieces = cores() if self.workers == AUTOMATIC else max(1, self.workers)
        budget = self.budget or len(candidates) * len(self.rates)
        return Space(corpus, candidates, (min(self.rates), max(self.rates)), budget, pieces)
