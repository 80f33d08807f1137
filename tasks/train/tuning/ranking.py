"""Ranks optimizers by their tuning runs, and compares the default optimizer with the best one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.train.tuning.runs import TuningRun

NEAR_BEST = 0.98  # a score is near the best from this fraction of the best score at the same size
_HEADINGS = "size | optimizer | best rate | loss | score | steps to near the best | seconds to near the best"
_HEADINGS += " | total seconds | state per number"


@dataclass(frozen=True)
class Ranking:
    """The best run of one optimizer with vectors of one size."""

    run: TuningRun
    steps: int | None  # steps until the score was near the best score; None if it never was
    seconds: float | None  # seconds of training until then; None if it never was
    at_the_edge: bool  # whether the rate is the smallest or largest of the grid; a wider grid may be better


def rank(runs: Sequence[TuningRun]) -> list[Ranking]:
    """Returns the best run of each optimizer and size, sorted by size, then by descending score."""
    rankings = []
    for size in sorted({run.size for run in runs}):
        runs_of_size = [run for run in runs if run.size == size]
        top = max(run.score for run in runs_of_size)
        for name in dict.fromkeys(run.name for run in runs_of_size):
            candidates = [run for run in runs_of_size if run.name == name]
            best = max(candidates, key=lambda run: run.score)
            near_mark = next((mark for mark in best.marks if mark.score >= NEAR_BEST * top), None)
            factors = [run.factor for run in candidates]
            edge = len(factors) > 1 and best.factor in (min(factors), max(factors))
            rankings.append(
                Ranking(best, near_mark and near_mark.step, near_mark and near_mark.seconds, edge)
            )
    return sorted(rankings, key=lambda ranking: (ranking.run.size, -ranking.run.score))


def compare_with_preset(table: Sequence[Ranking], preset: str) -> str:
    """Compares the optimizer of the presets with the best one: mean score over the sizes, time and state."""
    runs: dict[str, list[TuningRun]] = {}
    for row in table:  # sorted by size
        runs.setdefault(row.run.name, []).append(row.run)
    if preset not in runs:
        return f"The presets use {preset}, which is not in the comparison."
    score = {name: sum(run.score for run in group) / len(group) for name, group in runs.items()}
    seconds = {name: sum(run.marks[-1].seconds for run in group if run.marks) for name, group in runs.items()}
    state = {name: group[-1].state for name, group in runs.items()}
    best = max(score, key=lambda name: (score[name], name == preset))
    text = (
        f"The presets use {preset}: score {score[preset]:.3f}, the mean over {len(runs[preset])} sizes, with "
        f"{state[preset]:.2f} numbers of state per parameter."
    )
    if best == preset:
        rival = max(score.keys() - {preset}, key=lambda name: score[name], default="")
        runner_up = f"; next is {rival} with {score[rival]:.3f} and {state[rival]:.2f}" if rival else ""
        return f"{text} It has the best score{runner_up}."
    titles = table[0].run.titles
    errors = 1 / math.sqrt(max(titles, 1))  # two standard errors of a fraction of one half
    size, advice = "within", "; keep the optimizer of the presets unless the best has less state."
    if score[best] - score[preset] >= errors:
        size, advice = "more than", f": consider train.optimizer={best}."
    slowdown = seconds[best] / max(seconds[preset], 1e-9)
    return (
        f"{text} The best is {best}: {score[best]:.3f}, {state[best]:.2f} numbers of state, {slowdown:.1f} "
        f"times the seconds. The difference is {size} two standard errors ({errors:.3f}) of a score of "
        f"{titles} titles{advice}"
    )


def table_markdown(table: Sequence[Ranking], sentence: str) -> str:
    """Renders ``sentence`` (the comparison with the presets) and the ranking as a Markdown table."""
    lines = [sentence, "", f"| {_HEADINGS} |", "| ---: | --- |" + " ---: |" * 7]
    for ranking in table:
        run, marks = ranking.run, ranking.run.marks[-1:]
        cells = [str(run.size), run.name, f"{run.rate:.3g}{' (edge)' if ranking.at_the_edge else ''}"]
        losses = [] if run.trouble else [f"{mark.loss:.4f}" for mark in marks]
        cells += [*losses, f"{run.score:.4f}"] if losses else ["", "diverged"]
        cells += ["never", ""] if ranking.seconds is None else [f"{ranking.steps}", f"{ranking.seconds:.2f}"]
        cells += [f"{sum(mark.seconds for mark in marks):.2f}", f"{run.state:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    near_best_note = f'"Near the best" means {NEAR_BEST:.0%} of the best score at that size.'
    edge = '"(edge)": the best rate is the lowest or highest one tried; a wider grid might be better.'
    return "\n".join([*lines, "", f"{near_best_note} {edge}\n"])
