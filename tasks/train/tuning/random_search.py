"""Searches optimizers and learning rates at random, as a baseline for the other searches."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tasks.form import configurable
from tasks.train.tuning.entries import Entry
from tasks.train.tuning.space import Space, TuningTrial
from tasks.train.tuning.trials import Trials


@configurable
class RandomSearch(Trials):
    """Search strategy: draws optimizers and learning rates at random.

    Bergstra, Bengio. Random Search for Hyper-Parameter Optimization. JMLR 2012.
    """

    name: Literal["random"] = "random"

    def propose(self, space: Space, finished: Sequence[TuningTrial], number: int) -> tuple[Entry, float]:
        """Draws optimizer and factor on its learning rate for training ``number``, which seeds the draw."""
        return space.draw(np.random.default_rng([space.seed, number]))
