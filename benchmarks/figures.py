"""Generates docs/figures.md, ten figures for newcomers, and a plot of their trends from the history."""

import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from benchmarks.claims import ROOT, Claim, number
from benchmarks.history import Measurement

PAGE, PLOT = ROOT / "docs" / "figures.md", ROOT / "docs" / "figures.svg"
WIDTH, HEIGHT, COLUMNS = 180, 110, 5  # of each small plot, in pixels; plots per row
BUSY = 2  # load average above which the page names it: other work slowed the measurement
INTRODUCTION = """\
# Ten figures

Each figure was measured on one machine with two cores; the commit and the date say when. Ratios are ours to
the rival's, measured in the same run. "four guides" are the guides of the United Kingdom, the USA, Australia
and South Africa, 21,800 titles in 160,000 programmes. Intervals are 95 %. The editor is a language model that
chooses from all titles of the guide; a load is named if other work slowed the measurement. All other figures,
with missed targets, are in [benchmarks](../benchmarks/README.md).

This page and its plot are generated from `benchmarks/history.jsonl` by `make bench`; do not edit them.
"""


@dataclass(frozen=True)
class Figure:
    """A claim of a benchmark that docs/figures.md shows.

    Attributes:
        label: What newcomers read.
        section: Section of the history.
        claim: Beginning of the name of the claim; ``?`` stands for any character (the rival's number of
            threads is the faster one).
        rival: Rival of the claim; "" if it has none.
        scale: Factor of the shown value and interval.
        unit: Unit of the shown value.
    """

    label: str
    section: str
    claim: str
    rival: str = ""
    scale: float = 1.0
    unit: str = ""

    def values(self, history: Sequence[Measurement]) -> Iterator[tuple[Measurement, Claim]]:
        """Yields the measurements of this figure, in the order of the history."""
        for measured in history:
            for claim in measured.claims if measured.section == self.section else ():
                if fnmatch.fnmatchcase(claim.name, f"{self.claim}*") and claim.rival == self.rival:
                    yield measured, claim
                    break


FIGURES = (
    Figure(
        "first run in a new clone",
        "first_run",
        "first run in a new clone, seconds",
        "later run, new home",
        unit=" s",
    ),
    Figure("night, four guides", "nightly", "nightly run, seconds", unit=" s"),
    Figure(
        "night after 2 % of a guide changed", "changed", "changed night, seconds", "full night", unit=" s"
    ),
    Figure("memory of a night, four guides", "nightly", "peak memory of all its processes", unit=" GB"),
    Figure(
        "titles trained per second", "training", "words: training, threads: 1 and ?, titles/s", "fastText"
    ),
    Figure(
        "categories filled at precision .9",
        "hidden",
        "hidden shows, mean of 5 guides, 0.9 requested: coverage",
        scale=100,
        unit=" %",
    ),
    Figure("films detected", "kinds", "mean recall, film", scale=100, unit=" %"),
    Figure(
        "similar titles, rated 0 to 10, blind",
        "blind",
        "sets with an editor, 150 titles: mean rating",
        "editor",
    ),
    Figure(
        "p99 of `serve`, 8 clients",
        "serve",
        "8 clients, 2,000 requests: p99",
        "mlflow models serve",
        1,
        " ms",
    ),
    Figure("kills survived", "kills", "kills survived, all kinds", "kills"),
)


def render(history: Sequence[Measurement]) -> str:
    """Returns the page."""
    lines = [
        "| figure | GuideSpace | rival | theirs | ratio | command | date, commit |",
        "| --- | ---: | --- | ---: | ---: | --- | --- |",
    ]
    for figure in FIGURES:
        values = [*figure.values(history)]
        command = f"`python -m benchmarks --only {figure.section}`"
        if not values:
            lines.append(
                f"| {figure.label} | not measured yet | {figure.rival or '–'} | – | – | {command} | – |"
            )
            continue
        measured, claim = values[-1]
        theirs, ratio = number(claim.rival_value), number(claim.ratio)
        if claim.rival_value is not None:
            theirs = _shown(claim.rival_value, claim.rival_interval, figure)
        cells = [figure.label, _shown(claim.value, claim.interval, figure), claim.rival or "–", theirs, ratio]
        when = f"{measured.date[:10]}, `{measured.commit}`"
        if (measured.load or 0) > BUSY:
            when += f", load {measured.load:g}"
        lines.append(f"| {' | '.join([*cells, command, when])} |")
    return f"{INTRODUCTION}\n" + "\n".join(lines) + "\n\n![Trend of the ten figures](figures.svg)\n"


def _shown(value: float, interval: Sequence[float] | None, figure: Figure) -> str:
    bounds = [] if interval is None else [number(bound * figure.scale) for bound in interval]
    return number(value * figure.scale) + figure.unit + (f" [{', '.join(bounds)}]" if bounds else "")


def plot(history: Sequence[Measurement]) -> str:
    """Returns an SVG with a small plot of every figure: the value of each measurement, oldest first."""
    from tasks.plotting import BLUE, FONT, GRID, INK, MUTED

    rows = -(-len(FIGURES) // COLUMNS)
    size = f'width="{WIDTH * COLUMNS}" height="{HEIGHT * rows}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{escape(FONT)}" font-size="10">']
    parts.append('<rect width="100%" height="100%" fill="#ffffff"/>')
    for place, figure in enumerate(FIGURES):
        values = [claim.value for _, claim in figure.values(history)]
        x, y = place % COLUMNS * WIDTH, place // COLUMNS * HEIGHT
        parts.append(f'<g transform="translate({x + 10},{y + 16})">')
        parts.append(f'<text fill="{INK}">{escape(figure.label.replace("`", ""))}</text>')
        parts.append(f'<line x1="0" y1="76" x2="{WIDTH - 20}" y2="76" stroke="{GRID}"/>')
        if values:
            step = (WIDTH - 30) / max(1, len(values) - 1)
            points = [(5 + index * step, 76 - 54 * value / max(values)) for index, value in enumerate(values)]
            path = " ".join(f"{across:.1f},{up:.1f}" for across, up in points)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{BLUE}" stroke-width="1.5"/>')
            parts += [
                f'<circle cx="{across:.1f}" cy="{up:.1f}" r="2" fill="{BLUE}"/>' for across, up in points
            ]
            last = number(values[-1] * figure.scale) + figure.unit
            about = f"{last}, {len(values)} measurement{'s' * (len(values) > 1)}"
        else:
            about = "not measured yet"
        parts.append(f'<text y="90" fill="{MUTED}">{about}</text></g>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def update(history: Sequence[Measurement], page: Path = PAGE, picture: Path = PLOT) -> None:
    """Writes the page and the plot."""
    page.write_text(render(history), encoding="utf-8")
    picture.write_text(plot(history), encoding="utf-8")
