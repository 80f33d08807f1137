"""Runs searches that train every candidate completely and propose the next by the scores so far."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from storage.artifacts import Progress
from tasks.form import configurable
from tasks.pool import Submit
from tasks.train.tuning.entries import Entry
from tasks.train.tuning.runs import TuningRun, run_training
from tasks.train.tuning.space import Journal, Round, Space, TuningTrial


@configurable
class Trials:
    """Base class of searches that train every candidate from start to end."""

    ROUND_SIZE: ClassVar[int] = 8  # trainings that are proposed at once
    name: str

    def propose(self, space: Space, finished: Sequence[TuningTrial], number: int) -> tuple[Entry, float]:
        """Proposes an optimizer, and the factor on its learning rate, for training ``number``."""
        raise NotImplementedError

    def search(self, space: Space, folder: Path, submit: Submit) -> Iterator[Progress]:
        """Runs or resumes the search, and yields progress after each round (see space.py)."""
        journal = Journal(folder, self, space, -(-space.trainings // self.ROUND_SIZE))
        finished = [trial for search_round in journal.rounds for trial in search_round.trials]
        while len(finished) < space.trainings:
            started = time.perf_counter()
            numbers = range(len(finished), min(len(finished) + self.ROUND_SIZE, space.trainings))
            proposals = [self.propose(space, finished, number) for number in numbers]
            futures = [submit(run_training, space.corpus, *proposal) for proposal in proposals]
            trials = [_to_trial(future.result()) for future in futures]
            finished += trials
            best = max(finished, key=lambda trial: trial.score)
            winners = ((f"{best.name} {best.rate:.3g}", best.score),)
            yield journal.add(Round(tuple(trials), winners, time.perf_counter() - started))


def _to_trial(run: TuningRun) -> TuningTrial:
    steps = run.marks[-1].step if run.marks else 0
    return TuningTrial(run.name, run.factor, run.rate, run.score, not run.trouble, steps)
