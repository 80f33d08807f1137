"""Tries optimizers and learning rates at random, as a baseline for other searches."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from storage.artifacts import Progress
from tasks.form import configurable
from tasks.pool import Submit
from tasks.train.tuning.runs import TuningRun, run_training
from tasks.train.tuning.space import Journal, Round, Space, TuningTrial

ROUND_SIZE = 8  # number of trainings that are submitted at once


@configurable
class RandomSearch:
    """Search strategy: draws optimizers and learning rates at random, and trains each candidate completely.

    References: Bergstra, Bengio. Random Search for Hyper-Parameter Optimization. JMLR 2012.
    """

    name: Literal["random"] = "random"

    def search(self, space: Space, folder: Path, submit: Submit) -> Iterator[Progress]:
        """Runs or resumes the search, and yields a Progress after each round of trainings.

        Args:
            space: Optimizers, range of learning rates, and the budget of the search.
            folder: Folder of the journal, from which an interrupted search resumes.
            submit: Calls a function with arguments in a worker and returns a future.
        """
        journal = Journal(folder, self, space, -(-space.trainings // ROUND_SIZE))
        finished_trials = [trial for search_round in journal.rounds for trial in search_round.trials]
        while len(finished_trials) < space.trainings:
            started = time.perf_counter()
            first_number = len(finished_trials)
            numbers = range(first_number, min(first_number + ROUND_SIZE, space.trainings))
            draws = [space.draw(np.random.default_rng([space.seed, number])) for number in numbers]
            futures = [submit(run_training, space.corpus, *draw) for draw in draws]
            trials = [_to_trial(future.result()) for future in futures]
            finished_trials += trials
            best_trial = max(finished_trials, key=lambda trial: trial.score)
            winners = ((f"{best_trial.name} {best_trial.rate:.3g}", best_trial.score),)
            yield journal.add(Round(tuple(trials), winners, time.perf_counter() - started))


def _to_trial(run: TuningRun) -> TuningTrial:
    """Converts the result of a complete training."""
    steps = run.marks[-1].step if run.marks else 0
    return TuningTrial(run.name, run.factor, run.rate, run.score, not run.trouble, steps)
