"""Defines the space and the budget of a search over optimizers, and stores the rounds of a search.

A search is a strategy with ``search(space, folder, submit)``: it
yields a Progress after each round and writes the round to ``folder/journal.json``. If it is restarted with
the same space, it resumes after the last round. ``submit(function, *arguments)`` returns a future
(tasks/pool.py, or tasks of a Prefect flow).
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from storage.artifacts import Progress
from storage.json_file import write_json
from tasks.train.tuning.entries import Entry


@dataclass(frozen=True)
class Space:
    """Search space: optimizers with their settings, learning rates, and the budget of the search."""

    corpus: Path  # folder of a Corpus
    entries: tuple[Entry, ...]  # see Entry.for_scoring
    rates: tuple[float, float]  # smallest and largest factor on the learning rate of an entry
    trainings: int  # budget: complete trainings, or the same number of epochs
    pieces: int = 1  # pieces of a round, one per worker; does not change results

    @property
    def epochs(self) -> int:
        """Number of epochs of one training."""
        return self.entries[0].settings.epochs

    @property
    def seed(self) -> int:
        """Seed of all random draws."""
        return self.entries[0].settings.seed

    def draw(self, rng: np.random.Generator) -> tuple[Entry, float]:
        """Draws an optimizer, and a log-uniform factor on its learning rate."""
        entry = self.entries[rng.integers(len(self.entries))]
        lowest, highest = (math.log(rate) for rate in self.rates)
        return entry, math.exp(rng.uniform(lowest, highest))


@dataclass(frozen=True)
class TuningTrial:
    """Result of one training in a search: a complete training, or that of a member in one generation."""

    name: str  # name of the optimizer
    factor: float  # factor on the default learning rate of the optimizer
    rate: float  # learning rate
    score: float  # tuning score after training; 0 if it diverged
    kept: bool = True  # False if the previous state of the member was better and was restored
    steps: int = 0  # training steps


@dataclass(frozen=True)
class Round:
    """One round of a search: a generation of a population, or trainings that run at the same time."""

    trials: tuple[TuningTrial, ...]
    winners: tuple[tuple[str, float], ...]  # optimizer and score of the best trainings so far, best first
    seconds: float  # wall-clock time
    state: Any = None  # JSON that the search needs to resume


class Journal:
    """File with the finished rounds of a search, from which an interrupted search resumes.

    Raises:
        ValueError: The folder holds the journal of another search.
    """

    def __init__(self, folder: Path, search: object, space: Space, total: int) -> None:
        self._file, self.total = folder / "journal.json", total
        identity = {"search": asdict(search), "entries": [asdict(entry) for entry in space.entries]}  # pyright: ignore[reportArgumentType]
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
            self.rounds = [_to_round(entry) for entry in journal["rounds"]]

    def add(self, finished: Round) -> Progress:
        """Stores a finished round, and returns the progress of the search."""
        self.rounds.append(finished)
        write_json(
            self._file,
            {"about": self._identity, "rounds": [asdict(search_round) for search_round in self.rounds]},
        )
        name, best = finished.winners[0]
        metrics = {"best_score": best, "seconds": finished.seconds}
        metrics["mean_score"] = sum(trial.score for trial in finished.trials) / len(finished.trials)
        return Progress(len(self.rounds), self.total, metrics, f"best {best:.4f} by {name}")


def _to_round(fields: dict[str, Any]) -> Round:
    trials = tuple(TuningTrial(**trial) for trial in fields["trials"])
    winners = tuple((name, score) for name, score in fields["winners"])
    return Round(trials, winners, fields["seconds"], fields["state"])


def read_rounds(folder: Path) -> list[Round]:
    """Reads the finished rounds from the folder of a search."""
    return [
        _to_round(entry)
        for entry in json.loads((folder / "journal.json").read_text(encoding="utf-8"))["rounds"]
    ]
