"""What the courses of a contest come to: who is where, and what to say of the rule that the presets use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.contest.courses import Course

NEAR = 0.98  # of the best score of all at that size: "got there"


@dataclass(frozen=True)
class Standing:
    """One entry at one size, with its best rate.

    Attributes:
        course: Its best course.
        steps: Until it was near the best score of all; none if never.
        seconds: Likewise.
        at_the_edge: Whether its best rate is the smallest or the largest tried: a wider grid might do better.
    """

    course: Course
    steps: int | None
    seconds: float | None
    at_the_edge: bool


def standings(courses: Sequence[Course]) -> list[Standing]:
    """One an entry and size, by size, then from the best score to the worst."""
    found = []
    for size in sorted({course.size for course in courses}):
        here = [course for course in courses if course.size == size]
        top = max(course.score for course in here)
        for name in dict.fromkeys(course.name for course in here):
            own = [course for course in here if course.name == name]
            best = max(own, key=lambda course: course.score)
            near = next((mark for mark in best.marks if mark.score >= NEAR * top), None)
            factors = [course.factor for course in own]
            edge = len(factors) > 1 and best.factor in (min(factors), max(factors))
            found.append(Standing(best, near and near.step, near and near.seconds, edge))
    return sorted(found, key=lambda standing: (standing.course.size, -standing.course.score))


def verdict(table: Sequence[Standing], preset: str) -> str:
    """Which rule the presets use, and why: its score beside the best one's, its time and its memory."""
    sizes = sorted({standing.course.size for standing in table})
    means = {name: [_of(table, size, name).course for size in sizes] for name in dict.fromkeys(standing.course.name for standing in table)}
    score = {name: sum(course.score for course in own) / len(own) for name, own in means.items()}
    if preset not in score:
        return f"The presets use {preset}, which took no part."
    best = max(score, key=lambda name: score[name])
    seconds = {name: sum(course.marks[-1].seconds for course in own if course.marks) for name, own in means.items()}
    states = {name: own[-1].state for name, own in means.items()}
    text = f"The presets use {preset}: score {score[preset]:.3f}, the mean over {len(sizes)} sizes, with {states[preset]:.2f} numbers of state a number of a row"
    if best == preset:
        rivals = sorted((name for name in score if name != preset), key=lambda name: -score[name])
        rest = f"; next is {rivals[0]} with {score[rivals[0]]:.3f} and {states[rivals[0]]:.2f}." if rivals else "."
        return f"{text}. It has the best score{rest}"
    text += f". The best is {best}: {score[best]:.3f}, {states[best]:.2f} numbers of state, {seconds[best] / max(seconds[preset], 1e-9):.1f} times the seconds."
    titles = table[0].course.titles
    chance = 1 / math.sqrt(max(titles, 1))  # two standard errors of a share of one half
    if score[best] - score[preset] < chance:
        return f"{text} The difference is within two standard errors ({chance:.3f}) of a score of {titles} titles; the presets keep the rule with less to store and to move."
    return f"{text} The difference is more than two standard errors ({chance:.3f}) of a score of {titles} titles: consider train.rule={best}."


def _of(table: Sequence[Standing], size: int, name: str) -> Standing:
    return next(standing for standing in table if standing.course.size == size and standing.course.name == name)


def table_markdown(table: Sequence[Standing], sentence: str) -> str:
    """The table of a contest for people."""
    lines = [sentence, "", "| size | rule | best rate | loss | score | steps to near the best | seconds to there | seconds in all | state a number |"]
    lines.append("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for standing in table:
        course = standing.course
        last = course.marks[-1] if course.marks else None
        rate = f"{course.rate:.3g}{' (edge)' if standing.at_the_edge else ''}"
        reached = (str(standing.steps), f"{standing.seconds:.2f}") if standing.seconds is not None else ("never", "")
        ended = (f"{last.loss:.4f}", f"{course.score:.4f}") if last and not course.trouble else ("", "diverged")
        lines.append(f"| {course.size} | {course.name} | {rate} | {' | '.join((*ended, *reached))} | {last.seconds if last else 0:.2f} | {course.state:.2f} |")
    lines += ["", f'Near the best is {NEAR:.0%} of the best score at that size. "(edge)": the best of the rates tried is the first or the last, a wider grid might do better.']
    return "\n".join(lines) + "\n"
