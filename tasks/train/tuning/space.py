"""Defines the space and the budget of a search over optimizers, and stores the rounds of a search.

A search is a strategy with the method ``search(space, folder, submit)``. It yields a Progress after each
round and writes the round to ``folder/journal.json``. If a search is started again with the same space, it
resumes after its last round. ``submit(function, *arguments)`` calls a function in a worker and returns a
future; it comes from tasks/pool.py, or submits a task of a Prefect flow.
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from storage.artifacts import Progress
from storage.json_file import write_json
from tasks.train.tuning.entries import Candidate


@dataclass(frozen=True)
class Space:
    """Search space: optimizers with their settings, learning rates, and the budget of the search."""

    corpus: Path  # folder of a Corpus
    candidates: tuple[Candidate, ...]  # results of Candidate.for_scoring
    rates: tuple[float, float]  # smallest and largest factor on the learning rate of a candidate
    trainings: int  # budget, in complete trainings; a search may divide their epochs differently
    pieces: int = 1  # number of pieces of a round, one per worker; does not change results

    @property
    def epochs(self) -> int:
        """Number of epochs of one training."""
        return self.candidates[0].settings.epochs

    @property
    def seed(self) -> int:
        """Seed of all random draws."""
        return self.candidates[0].settings.seed

    def draw(self, rng: np.random.Generator) -> tuple[Candidate, float]:
        """Draws a candidate, and the factor on its learning rate from a log-uniform distribution."""
        candidate = self.candidates[rng.integers(len(self.candidates))]
        log_min, log_max = (math.log(rate) for rate in self.rates)
        return candidate, math.exp(rng.uniform(log_min, log_max))


@dataclass(frozen=True)
class TuningTrial:
    """Result of a training in a search: a complete training, or that of a member in one generation."""

    name: str  # name of the optimizer
    factor: float  # factor on the default learning rate of the optimizer
    rate: float  # learning rate
    score: float  # tuning score after training; 0 if it diverged
    kept: bool = True  # False if the previous state of the member was better and was restored
    steps: int = 0  # number of training steps


@dataclass(frozen=True)
class Round:
    """One round of a search: a generation of a population, or trainings that run at the same time."""

    trials: tuple[TuningTrial, ...]
    winners: tuple[tuple[str, float], ...]  # optimizers and scores of the best trainings so far, best first
    seconds: float  # wall-clock time
    state: Any = None  # JSON value that the search needs to resume

    @property
    def mean_score(self) -> float:
        """Mean score of the trials."""
        return sum(trial.score for trial in self.trials) / len(self.trials)


class Journal:
    """Stores the finished rounds of a search in a file, from which an interrupted search resumes.

    Args:
        folder: Folder of the file ``journal.json``.
        search: The search strategy.
        space: The search space.
        total: Number of rounds of the complete search.

    Raises:
        ValueError: The folder contains the journal of another search.
    """

    def __init__(self, folder: Path, search: object, space: Space, total: int) -> None:
        self._file, self.total = folder / "journal.json", total
        candidates = [asdict(candidate) for candidate in space.candidates]
        identity = {"search": asdict(search), "entries": candidates}  # pyright: ignore[reportArgumentType]
        identity |= {"rates": space.rates, "trainings": space.trainings, "corpus": space.corpus.name}
        self._identity, self.rounds = json.loads(json.dumps(identity)), []
        folder.mkdir(parents=True, exist_ok=True)
        if self._file.exists():
            journal = json.loads(self._file.read_text(encoding="utf-8"))
            if journal["about"] != self._identity:
                changes = [name for name in identity if journal["about"].get(name) != self._identity[name]]
                raise ValueError(
                    f"{self._file} belongs to another search (different {', '.join(changes)}). Choose "
                    "another folder, or delete the file"
                )
            self.rounds = read_rounds(folder)

    def add(self, finished_round: Round) -> Progress:
        """Stores a finished round, and returns the Progress of the search."""
        self.rounds.append(finished_round)
        rounds = [asdict(search_round) for search_round in self.rounds]
        write_json(self._file, {"about": self._identity, "rounds": rounds})
        name, best_score = finished_round.winners[0]
        metrics = {"best_score": best_score, "seconds": finished_round.seconds}
        metrics["mean_score"] = finished_round.mean_score
        return Progress(len(self.rounds), self.total, metrics, f"best score {best_score:.4f} by {name}")


def _to_round(fields: dict[str, Any]) -> Round:
    trials = tuple(TuningTrial(**trial) for trial in fields["trials"])
    winners = tuple((name, score) for name, score in fields["winners"])
    return Round(trials, winners, fields["seconds"], fields["state"])


def read_rounds(folder: Path) -> list[Round]:
    """Reads the finished rounds of a search from the journal in its folder."""
    journal = json.loads((folder / "journal.json").read_text(encoding="utf-8"))
    return [_to_round(fields) for fields in journal["rounds"]]
