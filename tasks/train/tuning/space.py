"""What a search over rules and learning rates may try and spend, and the journal that it resumes from.

A search is a strategy with ``search(space, folder, submit)``: it yields a Progress after each round and keeps
each finished round in ``folder/journal.json``. Started again with the same space it continues behind the last
one. ``submit(function, *arguments)`` gives futures (tasks/pool.py, or tasks of a Prefect flow).
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
    """Rules, rates and the budget: so many whole trainings, or the same number of epochs spent otherwise."""

    corpus: Path  # folder of a Corpus
    entries: tuple[Entry, ...]  # see Entry.scored
    rates: tuple[float, float]  # least and largest factor on an entry's own learning rate
    trainings: int
    at_once: int = 1  # pieces into which a round is cut, one a worker; changes no number

    @property
    def epochs(self) -> int:
        """Of one training."""
        return self.entries[0].settings.epochs

    @property
    def seed(self) -> int:
        """Of everything drawn by chance."""
        return self.entries[0].settings.seed

    def draw(self, rng: np.random.Generator) -> tuple[Entry, float]:
        """A rule, and a factor on its learning rate, uniform in its logarithm."""
        entry = self.entries[rng.integers(len(self.entries))]
        least, largest = (math.log(rate) for rate in self.rates)
        return entry, math.exp(rng.uniform(least, largest))


@dataclass(frozen=True)
class Trial:
    """One training of a search: whole, or a member's in one generation."""

    name: str  # of the rule
    factor: float  # on its own learning rate
    rate: float
    score: float  # tuning score after it; 0 where it diverged
    kept: bool = True  # False: the member was set back to the state before, which was better
    steps: int = 0


@dataclass(frozen=True)
class Round:
    """A generation, or the trainings between two proposals."""

    trials: tuple[Trial, ...]
    winners: tuple[tuple[str, float], ...]  # rule and score of those that lead after it, best first
    seconds: float  # on the clock
    state: Any = None  # what the search needs beside it to continue: JSON


class Journal:
    """The rounds of a search, kept in a folder.

    Raises:
        ValueError: The folder holds the journal of another search.
    """

    def __init__(self, folder: Path, search: object, space: Space, total: int) -> None:
        self._file, self.total = folder / "journal.json", total
        about = {"search": asdict(search), "entries": [asdict(entry) for entry in space.entries]}  # pyright: ignore[reportArgumentType]
        about |= {"rates": space.rates, "trainings": space.trainings, "corpus": space.corpus.name}
        self._about, self.rounds = json.loads(json.dumps(about)), []
        folder.mkdir(parents=True, exist_ok=True)
        if self._file.exists():
            found = json.loads(self._file.read_text(encoding="utf-8"))
            if found["about"] != self._about:
                changed = [name for name in about if found["about"].get(name) != self._about[name]]
                text = f"{self._file} is of a search with other {', '.join(changed)}"
                raise ValueError(f"{text}. Choose another folder, or delete it")
            self.rounds = [_to_round(each) for each in found["rounds"]]

    def add(self, found: Round) -> Progress:
        """Keeps a finished round; returns what there is to say of it."""
        self.rounds.append(found)
        write_json(self._file, {"about": self._about, "rounds": [asdict(each) for each in self.rounds]})
        name, best = found.winners[0]
        metrics = {"best_score": best, "seconds": found.seconds}
        metrics["mean_score"] = sum(trial.score for trial in found.trials) / len(found.trials)
        return Progress(len(self.rounds), self.total, metrics, f"best {best:.4f} by {name}")


def _to_round(found: dict[str, Any]) -> Round:
    trials = tuple(Trial(**trial) for trial in found["trials"])
    winners = tuple((name, score) for name, score in found["winners"])
    return Round(trials, winners, found["seconds"], found["state"])


def read_rounds(folder: Path) -> list[Round]:
    """The rounds of a search's folder."""
    return [
        _to_round(each)
        for each in json.loads((folder / "journal.json").read_text(encoding="utf-8"))["rounds"]
    ]
