"""What a search found: its table, round by round, and searches side by side."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.train.tuning.space import Round


@dataclass(frozen=True)
class Outcome:
    """A finished search at one size."""

    search: str
    size: int  # dimensions
    score: float  # tuning score of the best
    rule: str  # of the best
    trainings: int  # of all rounds
    steps: int  # of all of them
    seconds: float  # on the clock

    @classmethod
    def of(cls, search: str, size: int, rounds: Sequence[Round]) -> "Outcome":
        """Sums up the rounds."""
        (rule, score), trials = rounds[-1].winners[0], [trial for each in rounds for trial in each.trials]
        steps, seconds = sum(trial.steps for trial in trials), sum(each.seconds for each in rounds)
        return cls(search, size, score, rule, len(trials), steps, seconds)


def searches_markdown(outcomes: Sequence[Outcome], workers: str) -> str:
    """Searches side by side, by size and falling score."""
    heading = "| size | search | best score | by | trainings | steps | seconds |"
    lines = [heading, "| ---: | --- | ---: | --- | ---: | ---: | ---: |"]
    for each in sorted(outcomes, key=lambda outcome: (outcome.size, -outcome.score)):
        numbers = f"{each.trainings} | {each.steps} | {each.seconds:.1f}"
        lines.append(f"| {each.size} | {each.search} | {each.score:.4f} | {each.rule} | {numbers} |")
    about = f"All had the same budget of epochs; seconds are those on the clock, {workers}."
    return "\n".join([*lines, "", f"{about} A member of esgd trains for a part of a training at a time.\n"])


def rounds_csv(rounds: Sequence[Round]) -> str:
    """A line for each round: the fitness, who won, which rules were drawn and how many were set back."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["round", "best", "by", "mean", "winners", "drawn", "set back", "seconds"])
    for number, found in enumerate(rounds, start=1):
        name, best = found.winners[0]
        mean = sum(trial.score for trial in found.trials) / len(found.trials)
        counts = (Counter(name for name, _ in found.winners), Counter(trial.name for trial in found.trials))
        winners, drawn = (", ".join(f"{n} {rule}" for rule, n in each.most_common()) for each in counts)
        back = sum(not trial.kept for trial in found.trials)
        row = [number, f"{best:.4f}", name, f"{mean:.4f}", winners, drawn, back, f"{found.seconds:.2f}"]
        writer.writerow(row)
    return text.getvalue()
