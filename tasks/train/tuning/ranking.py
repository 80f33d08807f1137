"""The ranking of tuning runs, and what to say of the optimizer that the presets use."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.train.tuning.runs import TuningRun

NEAR = 0.98  # of the best score of all at that size
_HEADINGS = "size | optimizer | best rate | loss | score | steps to near the best | seconds to there"
_HEADINGS += " | seconds in all | state a number"


@dataclass(frozen=True)
class Ranking:
    """An optimizer at one size: its best run."""

    run: TuningRun
    steps: int | None  # until its score was near the best of all; None if never
    seconds: float | None  # likewise
    at_the_edge: bool  # its rate is the smallest or the largest tried: a wider grid might do better


def rank(runs: Sequence[TuningRun]) -> list[Ranking]:
    """One for each optimizer and size, by size, then by falling score."""
    found = []
    for size in sorted({run.size for run in runs}):
        here = [run for run in runs if run.size == size]
        top = max(run.score for run in here)
        for name in dict.fromkeys(run.name for run in here):
            own = [run for run in here if run.name == name]
            best = max(own, key=lambda run: run.score)
            near = next((mark for mark in best.marks if mark.score >= NEAR * top), None)
            factors = [run.factor for run in own]
            edge = len(factors) > 1 and best.factor in (min(factors), max(factors))
            found.append(Ranking(best, near and near.step, near and near.seconds, edge))
    return sorted(found, key=lambda ranking: (ranking.run.size, -ranking.run.score))


def verdict(table: Sequence[Ranking], preset: str) -> str:
    """Compares the presets' optimizer with the best one: mean score over the sizes, time and state."""
    runs: dict[str, list[TuningRun]] = {}
    for ranking in table:  # by size
        runs.setdefault(ranking.run.name, []).append(ranking.run)
    if preset not in runs:
        return f"The presets use {preset}, which took no part."
    score = {name: sum(run.score for run in own) / len(own) for name, own in runs.items()}
    seconds = {name: sum(run.marks[-1].seconds for run in own if run.marks) for name, own in runs.items()}
    state = {name: own[-1].state for name, own in runs.items()}
    best = max(score, key=lambda name: (score[name], name == preset))
    text = f"The presets use {preset}: score {score[preset]:.3f}, the mean over {len(runs[preset])} sizes, "
    text += f"with {state[preset]:.2f} numbers of state a number of a row."
    if best == preset:
        rival = max(score.keys() - {preset}, key=lambda name: score[name], default="")
        behind = f"; next is {rival} with {score[rival]:.3f} and {state[rival]:.2f}" if rival else ""
        return f"{text} It has the best score{behind}."
    titles = table[0].run.titles
    errors = 1 / math.sqrt(max(titles, 1))  # two standard errors of a fraction of one half
    size, advice = "within", "; the presets keep the optimizer with less to store and to move."
    if score[best] - score[preset] >= errors:
        size, advice = "more than", f": consider train.optimizer={best}."
    slower = seconds[best] / max(seconds[preset], 1e-9)
    text += (
        f" The best is {best}: {score[best]:.3f}, {state[best]:.2f} numbers of state, {slower:.1f} times the"
    )
    text += f" seconds. The difference is {size} two standard errors ({errors:.3f}) of a score of"
    return f"{text} {titles} titles{advice}"


def table_markdown(table: Sequence[Ranking], sentence: str) -> str:
    """The ranking as a Markdown table below a sentence."""
    lines = [sentence, "", f"| {_HEADINGS} |", "| ---: | --- |" + " ---: |" * 7]
    for ranking in table:
        run, last = ranking.run, ranking.run.marks[-1] if ranking.run.marks else None
        cells = [str(run.size), run.name, f"{run.rate:.3g}{' (edge)' if ranking.at_the_edge else ''}"]
        cells += [f"{last.loss:.4f}", f"{run.score:.4f}"] if last and not run.trouble else ["", "diverged"]
        cells += ["never", ""] if ranking.seconds is None else [f"{ranking.steps}", f"{ranking.seconds:.2f}"]
        cells += [f"{last.seconds if last else 0:.2f}", f"{run.state:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    near = f"Near the best is {NEAR:.0%} of the best score at that size."
    edge = '"(edge)": the best rate is the first or the last one tried, a wider grid might do better.'
    return "\n".join([*lines, "", f"{near} {edge}\n"])
