"""Reports searches over optimizers: a CSV table of rounds, and a Markdown table that compares searches."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tasks.train.tuning.space import Round


@dataclass(frozen=True)
class Outcome:
    """Result of a search with vectors of one size."""

    search: str  # name of the search
    size: int  # number of dimensions of the vectors
    score: float  # best tuning score
    optimizer: str  # name of the optimizer that reached the best score
    trainings: int  # number of trainings in all rounds
    steps: int  # number of steps in all trainings
    seconds: float  # wall-clock time

    @classmethod
    def from_rounds(cls, search: str, size: int, rounds: Sequence[Round]) -> "Outcome":
        """Summarizes the rounds of the search with the name ``search`` as an Outcome."""
        optimizer, score = rounds[-1].winners[0]
        trials = [trial for search_round in rounds for trial in search_round.trials]
        steps = sum(trial.steps for trial in trials)
        seconds = sum(search_round.seconds for search_round in rounds)
        return cls(search, size, score, optimizer, len(trials), steps, seconds)


def searches_markdown(outcomes: Sequence[Outcome], workers: str) -> str:
    """Renders a Markdown table of the results of searches, sorted by size and descending score.

    The text ``workers`` describes the workers, such as "threads, 2 at a time".
    """
    header = "| size | search | best score | by | trainings | steps | seconds |"
    lines = [header, "| ---: | --- | ---: | --- | ---: | ---: | ---: |"]
    for outcome in sorted(outcomes, key=lambda outcome: (outcome.size, -outcome.score)):
        cost_cells = f"{outcome.trainings} | {outcome.steps} | {outcome.seconds:.1f}"
        cells = f"{outcome.size} | {outcome.search} | {outcome.score:.4f} | {outcome.optimizer}"
        lines.append(f"| {cells} | {cost_cells} |")
    note = f"All searches have the same budget of epochs; seconds are wall-clock time ({workers})."
    return "\n".join(
        [*lines, "", f"{note} In esgd, a training is the training of a member in a generation.\n"]
    )


def _count_names(names: Iterable[str]) -> str:
    """Formats names with the number of their occurrences, most frequent first, such as "2 adam, 1 sgd"."""
    return ", ".join(f"{count} {name}" for name, count in Counter(names).most_common())


def rounds_csv(rounds: Sequence[Round]) -> str:
    """Returns a CSV table with a row per round: scores, winners, drawn optimizers, restored members."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["round", "best", "by", "mean", "winners", "drawn", "set back", "seconds"])
    for number, search_round in enumerate(rounds, start=1):
        name, best_score = search_round.winners[0]
        winners = _count_names(optimizer for optimizer, _ in search_round.winners)
        optimizers = _count_names(trial.name for trial in search_round.trials)
        restored = sum(not trial.kept for trial in search_round.trials)
        scores = f"{best_score:.4f}", name, f"{search_round.mean_score:.4f}"
        writer.writerow([number, *scores, winners, optimizers, restored, f"{search_round.seconds:.2f}"])
    return text.getvalue()
