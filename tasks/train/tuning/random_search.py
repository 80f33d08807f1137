"""Random search: the rival that a search has to beat first."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tasks.form import configurable
from tasks.train.tuning.entries import Entry
from tasks.train.tuning.space import Space, Trial
from tasks.train.tuning.trials import Trials


@configurable
class RandomSearch(Trials):
    """Rules and rates at random.

    Bergstra, Bengio. Random Search for Hyper-Parameter Optimization. JMLR 2012.
    """

    name: Literal["random"] = "random"

    def propose(self, space: Space, done: Sequence[Trial], number: int) -> tuple[Entry, float]:
        """The same for a seed and a number, whatever was found before."""
        return space.draw(np.random.default_rng([space.seed, number]))
