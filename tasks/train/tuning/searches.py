"""Reports searches over optimizers: a CSV table of rounds, and a Markdown table that compares searches."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.train.tuning.space import Round


@dataclass(frozen=True)
class Outcome:
    """Result of one search with vectors of one size."""

    search: str
    size: int  # dimensions of vectors
    score: float  # best tuning score
    rule: str  # optimizer that reached the best score
    trainings: int  # number of trainings in all rounds
    steps: int  # number of steps in all trainings
    seconds: float  # wall-clock time

    @classmethod
    def from_rounds(cls, search: str, size: int, rounds: Sequence[Round]) -> "Outcome":
        """Summarizes the rounds of a search as an Outcome."""
        (rule, score), trials = (
            rounds[-1].winners[0],
            [trial for search_round in rounds for trial in search_round.trials],
        )
        steps, seconds = (
            sum(trial.steps for trial in trials),
            sum(search_round.seconds for search_round in rounds),
        )
        return cls(search, size, score, rule, len(trials), steps, seconds)


def searches_markdown(outcomes: Sequence[Outcome], workers: str) -> str:
    """Renders a table of searches by size and descending score; ``workers`` describes the workers."""
    heading = "| size | search | best score | by | trainings | steps | seconds |"
    lines = [heading, "| ---: | --- | ---: | --- | ---: | ---: | ---: |"]
    for outcome in sorted(outcomes, key=lambda outcome: (outcome.size, -outcome.score)):
        cost_cells = f"{outcome.trainings} | {outcome.steps} | {outcome.seconds:.1f}"
        cells = f"{outcome.size} | {outcome.search} | {outcome.score:.4f} | {outcome.rule}"
        lines.append(f"| {cells} | {cost_cells} |")
    note = f"All searches have the same budget of epochs; seconds are wall-clock time ({workers})."
    return "\n".join([*lines, "", f"{note} For esgd, a training is one generation of a member.\n"])


def rounds_csv(rounds: Sequence[Round]) -> str:
    """Renders a row per round: best and mean score, winners, drawn rules, and number of restored members."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["round", "best", "by", "mean", "winners", "drawn", "set back", "seconds"])
    for number, search_round in enumerate(rounds, start=1):
        name, best = search_round.winners[0]
        mean = sum(trial.score for trial in search_round.trials) / len(search_round.trials)
        rules = [rule for rule, _ in search_round.winners], [trial.name for trial in search_round.trials]
        winners, drawn = (", ".join(f"{n} {r}" for r, n in Counter(names).most_common()) for names in rules)
        restored = sum(not trial.kept for trial in search_round.trials)
        seconds = f"{search_round.seconds:.2f}"
        row = [number, f"{best:.4f}", name, f"{mean:.4f}", winners, drawn, restored, seconds]
        writer.writerow(row)
    return text.getvalue()
