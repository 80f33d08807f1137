"""Searches by whole trainings: each proposes a rule and a rate, and learns at most the final score."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from storage.artifacts import Progress
from tasks.form import configurable
from tasks.pool import Submit
from tasks.train.tuning.entries import Entry
from tasks.train.tuning.runs import TuningRun, run_training
from tasks.train.tuning.space import Journal, Round, Space, Trial


@configurable
class Trials:
    """Base of these searches."""

    AT_ONCE: ClassVar[int] = 8  # proposals before their scores are known
    name: str

    def propose(self, space: Space, done: Sequence[Trial], number: int) -> tuple[Entry, float]:
        """Rule and factor of training ``number``, given those whose score is known."""
        raise NotImplementedError

    def search(self, space: Space, folder: Path, submit: Submit) -> Iterator[Progress]:
        """Spends the budget, a round at a time (see tasks/train/tuning/space.py)."""
        journal = Journal(folder, self, space, -(-space.trainings // self.AT_ONCE))
        done = [trial for found in journal.rounds for trial in found.trials]
        while len(done) < space.trainings:
            started = time.perf_counter()
            numbers = range(len(done), min(len(done) + self.AT_ONCE, space.trainings))
            chosen = [self.propose(space, done, number) for number in numbers]
            futures = [submit(run_training, space.corpus, *each) for each in chosen]
            trials = [_to_trial(future.result()) for future in futures]
            done += trials
            best = max(done, key=lambda trial: trial.score)
            winners = ((f"{best.name} {best.rate:.3g}", best.score),)
            yield journal.add(Round(tuple(trials), winners, time.perf_counter() - started))


def _to_trial(run: TuningRun) -> Trial:
    steps = run.marks[-1].step if run.marks else 0
    return Trial(run.name, run.factor, run.rate, run.score, not run.trouble, steps)
