"""Ranks optimizers by their tuning runs, and compares the default optimizer with the best one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.train.tuning.runs import TuningRun

NEAR_BEST = 0.98  # a score is near the best if it is at least this fraction of the best score at its size
_HEADINGS = "size | optimizer | best rate | loss | score | steps to near the best | seconds to near the best"
_HEADINGS += " | total seconds | state per number"


@dataclass(frozen=True)
class Ranking:
    """The best run of an optimizer with vectors of one size."""

    run: TuningRun
    steps: int | None  # number of steps until the score was near the best score; None if it never was
    seconds: float | None  # seconds of training until the score was near the best one; None if it never was
    at_the_edge: bool  # whether the rate is the smallest or largest one tried; a wider range may be better


def rank(runs: Sequence[TuningRun]) -> list[Ranking]:
    """Returns the best run of each optimizer and size, sorted by size, then by descending score."""
    rankings = []
    for size in sorted({run.size for run in runs}):
        runs_of_size = [run for run in runs if run.size == size]
        best_score = max(run.score for run in runs_of_size)
        for name in dict.fromkeys(run.name for run in runs_of_size):
            runs_of_optimizer = [run for run in runs_of_size if run.name == name]
            best = max(runs_of_optimizer, key=lambda run: run.score)
            near_best_epochs = (epoch for epoch in best.marks if epoch.score >= NEAR_BEST * best_score)
            first_near_best = next(near_best_epochs, None)
            factors = [run.factor for run in runs_of_optimizer]
            at_the_edge = len(factors) > 1 and best.factor in (min(factors), max(factors))
            steps, seconds = (
                (first_near_best.step, first_near_best.seconds) if first_near_best else (None, None)
            )
            rankings.append(Ranking(best, steps, seconds, at_the_edge))
    return sorted(rankings, key=lambda ranking: (ranking.run.size, -ranking.run.score))


def compare_with_preset(rankings: Sequence[Ranking], preset: str) -> str:
    """Returns a text that compares the optimizer ``preset`` with the best one: score, time and state."""
    runs: dict[str, list[TuningRun]] = {}
    for ranking in rankings:  # sorted by size
        runs.setdefault(ranking.run.name, []).append(ranking.run)
    if preset not in runs:
        return f"The presets use {preset}, which is not in the comparison."
    scores = {name: sum(run.score for run in group) / len(group) for name, group in runs.items()}
    seconds = {name: sum(run.marks[-1].seconds for run in group if run.marks) for name, group in runs.items()}
    state = {name: group[-1].state for name, group in runs.items()}
    best = max(scores, key=lambda name: (scores[name], name == preset))
    text = (
        f"The presets use {preset}: score {scores[preset]:.3f}, the mean over {len(runs[preset])} sizes, "
        f"with {state[preset]:.2f} optimizer state values per parameter."
    )
    if best == preset:
        rival = max(scores.keys() - {preset}, key=lambda name: scores[name], default="")
        runner_up = ""
        if rival:
            runner_up = (
                f"; the second best is {rival} with a score of {scores[rival]:.3f} and {state[rival]:.2f} "
                "optimizer state values per parameter"
            )
        return f"{text} It has the best score{runner_up}."
    title_count = rankings[0].run.titles
    error_margin = 1 / math.sqrt(max(title_count, 1))  # two standard errors of a fraction of one half
    comparison, advice = "within", "; keep the optimizer of the presets unless the best has less state."
    if scores[best] - scores[preset] >= error_margin:
        comparison, advice = "more than", f": consider train.optimizer={best}."
    slowdown = seconds[best] / max(seconds[preset], 1e-9)
    return (
        f"{text} The best is {best}: {scores[best]:.3f}, {state[best]:.2f} optimizer state values, "
        f"{slowdown:.1f} times the seconds. The difference is {comparison} two standard errors "
        f"({error_margin:.3f}) of a score of {title_count} titles{advice}"
    )


def rankings_markdown(rankings: Sequence[Ranking], comparison: str) -> str:
    """Renders the comparison with the presets, and below it a Markdown table of the rankings."""
    lines = [comparison, "", f"| {_HEADINGS} |", "| ---: | --- |" + " ---: |" * 7]
    for ranking in rankings:
        run, last_epoch = ranking.run, ranking.run.marks[-1:]  # no epoch if the first one failed
        cells = [str(run.size), run.name, f"{run.rate:.3g}{' (edge)' if ranking.at_the_edge else ''}"]
        losses = [] if run.trouble else [f"{epoch.loss:.4f}" for epoch in last_epoch]
        cells += [*losses, f"{run.score:.4f}"] if losses else ["", "diverged"]
        cells += ["never", ""] if ranking.seconds is None else [f"{ranking.steps}", f"{ranking.seconds:.2f}"]
        cells += [f"{sum(epoch.seconds for epoch in last_epoch):.2f}", f"{run.state:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    near_best_note = f'"Near the best" means at least {NEAR_BEST:.0%} of the best score at the same size.'
    edge_note = '"(edge)" means that the best rate is the lowest or highest one tried; try a wider range.'
    return "\n".join([*lines, "", f"{near_best_note} {edge_note}\n"])
