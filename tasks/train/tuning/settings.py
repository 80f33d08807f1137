"""Defines the settings of `guidespace tune`, which compares optimizers or searches for good ones."""

import math
from pathlib import Path
from typing import Literal

from tasks.form import configurable, setting
from tasks.pool_settings import AUTOMATIC, count_workers
from tasks.train.settings import TrainSettings
from tasks.train.tuning.entries import list_candidates
from tasks.train.tuning.esgd import ESGD
from tasks.train.tuning.random_search import RandomSearch
from tasks.train.tuning.space import Space

Search = ESGD | RandomSearch


@configurable
class TuningSettings:
    """Settings of tuning: optimizers, vector sizes and learning rates to compare, and searches."""

    optimizers: tuple[str, ...] = setting(
        (), "Names of optimizers to compare, among them yellowfin; empty: all of them"
    )
    sizes: tuple[int, ...] = setting(
        (32, 128, 256), "Numbers of dimensions of the vectors; each is a comparison or a search of its own"
    )
    rates: tuple[float, ...] = setting(
        (0.3, 1.0, 3.0),
        "Factors on the learning rate of an optimizer; a search draws from the range between them",
    )
    share: float = setting(
        0.1,
        "Share of all first words of titles; titles with these first words form the tuning set",
        gt=0,
        lt=0.5,
    )
    searches: tuple[Search, ...] = setting(
        (), "Searches that replace the comparison of all optimizers at all rates"
    )
    budget: int = setting(
        0, "Budget of a search, in complete trainings; 0: number of optimizers × number of rates", ge=0
    )
    pool: Literal["threads", "processes", "dask", "ray"] = setting(
        "threads", "Task runner of the searches; dask and ray need the optional dependencies of that name"
    )
    workers: int = setting(
        AUTOMATIC,
        "Number of workers of the pool; a worker trains one member at a time; -1: one per core",
        ge=AUTOMATIC,
    )
    pool_address: str = setting(
        "", "Address of a Dask scheduler or Ray cluster; empty: start one on this machine"
    )

    def __post_init__(self) -> None:
        for name in ("sizes", "rates"):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty; specify at least one value")
        if invalid_values := [size for size in self.sizes if not 2 <= size <= 4096]:  # as in train.dim
            raise ValueError(f"sizes: {invalid_values[0]} is not a number of dimensions from 2 to 4096")
        if invalid_values := [rate for rate in self.rates if not 0 < rate < math.inf]:
            raise ValueError(f"rates: {invalid_values[0]} is not a finite factor above 0")

    def space(self, corpus: Path, settings: TrainSettings, size: int) -> Space:
        """Returns the search space, with the budget of a search, for vectors with ``size`` dimensions.

        Args:
            corpus: Folder of a Corpus.
            settings: Settings of a training, of which a candidate replaces the optimizer.
            size: Number of dimensions of the vectors.
        """
        candidates = tuple(
            candidate.for_scoring(size, self.share)
            for candidate in list_candidates(settings, self.optimizers)
        )
        budget = self.budget or len(candidates) * len(self.rates)
        pieces = count_workers(self.workers)
        return Space(corpus, candidates, (min(self.rates), max(self.rates)), budget, pieces)
