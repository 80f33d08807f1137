"""Settings of the comparison of optimizers and of the searches over them."""

import math
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from tasks.form import configurable, setting
from tasks.pool import AUTOMATIC, cores
from tasks.train.population.esgd import ESGD
from tasks.train.settings import TrainSettings
from tasks.train.tuning.entries import entries
from tasks.train.tuning.random_search import RandomSearch
from tasks.train.tuning.space import Space
from tasks.train.tuning.tpe import TPE

Search = ESGD | RandomSearch | TPE


@configurable
class TuningSettings:
    """Which optimizers are compared, at which sizes and learning rates; and how a search goes over them."""

    optimizers: tuple[str, ...] = setting((), "Names of optimizers, and yellowfin; empty: all of them")
    sizes: tuple[int, ...] = setting((32, 128, 256), "Dimensions of the vectors, one comparison each")
    rates: tuple[float, ...] = setting(
        (0.3, 1.0, 3.0), "Factors on each optimizer's own learning rate; a search goes from least to largest"
    )
    share: float = setting(0.1, "Share of the first words whose titles are set aside", gt=0, lt=0.5)
    range_test: bool = setting(False, "Show each optimizer's learning-rate range test and what it suggests")
    searches: tuple[Search, ...] = setting((), "Searches, instead of each optimizer at each rate")
    budget: int = setting(
        0, "Trainings that a search may spend, or as many epochs; 0: optimizers × rates, as without", ge=0
    )
    pool: Literal["threads", "processes", "dask", "ray"] = setting(
        "threads", "Task runner of the searches (dask and ray: extras of those names)"
    )
    workers: int = setting(AUTOMATIC, "Of the pool: members trained at a time; -1: the cores", ge=AUTOMATIC)
    pool_address: str = setting("", "Address of a Dask scheduler or Ray cluster; empty starts one here")

    def __post_init__(self) -> None:
        if wrong := [size for size in self.sizes if not 2 <= size <= 4096]:  # as in train.dim
            raise ValueError(f"sizes: {wrong[0]} is not a number of dimensions from 2 to 4096")
        if wrong := [rate for rate in self.rates if not 0 < rate < math.inf]:
            raise ValueError(f"rates: {wrong[0]} is not a factor above 0")
        if any(isinstance(search, TPE) for search in self.searches) and find_spec("optuna") is None:
            raise ValueError(
                "searches: tpe needs Optuna, which is not here: pip install 'guidespace[optuna]'"
            )

    def space(self, corpus: Path, settings: TrainSettings, size: int) -> Space:
        """What a search at one size may try and spend."""
        own = tuple(entry.scored(size, self.share) for entry in entries(settings, self.optimizers))
        at_once = cores() if self.workers == AUTOMATIC else max(1, self.workers)
        budget = self.budget or len(own) * len(self.rates)
        return Space(corpus, own, (min(self.rates), max(self.rates)), budget, at_once)
