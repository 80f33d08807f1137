"""Scores of blind ratings (blind_ratings.py): means and paired differences, and the agreement of readers."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.scoring.bootstrap import draw_groups, percentiles

RESAMPLES = 10_000
HIGH, LOW, BEST = 7, 3, 10  # thresholds of good and bad lists, and the best rating


def read_set(folder: Path) -> list[dict[str, float]]:
    """Reads the ratings of a set; returns a dict from system to mean rating of the readers for each title.

    Raises:
        ValueError: Ratings do not have the titles and columns of the key, or are not from 0 to 10.
    """
    columns = json.loads((folder.parents[1] / "keys" / f"{folder.name}.json").read_text(encoding="utf-8"))
    columns = columns["columns"]
    readers = [_read_ratings(file, columns) for file in _rating_files(folder)]
    return [
        {
            name: float(np.mean([ratings[number][letter] for ratings in readers]))
            for letter, names in systems.items()
            for name in names
        }
        for number, systems in columns.items()
    ]


def _rating_files(folder: Path) -> list[Path]:
    """Returns the files with the ratings of the readers of a set."""
    return [file for name in ("ratings.json", "ratings-2.json") if (file := folder / name).exists()]


def _read_ratings(file: Path, columns: dict[str, dict[str, list[str]]]) -> dict[str, dict[str, float]]:
    """Reads the ratings of one reader; raises ValueError as ``read_set``."""
    ratings = json.loads(file.read_text(encoding="utf-8"))
    expected_keys, rated_keys = (
        {(number, letter) for number, letters in table.items() for letter in letters}
        for table in (columns, ratings)
    )
    if expected_keys != rated_keys:
        missing, extra = sorted(expected_keys - rated_keys)[:5], sorted(rated_keys - expected_keys)[:5]
        raise ValueError(f"{file}: rate every column once; missing {missing}, not asked for {extra}")
    for number, letters in ratings.items():
        if not all(0 <= value <= BEST for value in letters.values()):
            raise ValueError(f"{file}: ratings are 0 to {BEST}, got {letters} for {number}")
    return ratings


def agreement(folders: Iterable[Path]) -> tuple[float, int]:
    """Returns the correlation (Pearson) of two readers over the lists of sets, and the number of lists.

    Sets with one reader are omitted; without others, the correlation is NaN.
    """
    pairs = []
    for folder in folders:
        readers = [json.loads(file.read_text(encoding="utf-8")) for file in _rating_files(folder)]
        if len(readers) == 2:
            first, second = readers
            pairs += [
                (value, second[number][letter])
                for number, letters in first.items()
                for letter, value in letters.items()
            ]
    return (float(np.corrcoef(np.array(pairs).T)[0, 1]) if pairs else np.nan), len(pairs)


@dataclass(frozen=True)
class Line:
    """Ratings of one system, and their difference to the reference on titles that were rated for both."""

    system: str
    titles: int
    mean: float
    high: float  # share rated 7 or more
    low: float  # share rated 3 or less
    wins: int
    losses: int
    difference: float  # mean of the paired differences
    interval: list[float]  # 95 %, bootstrap over titles


def score(titles: Sequence[dict[str, float]], reference: str) -> list[Line]:
    """Returns one line per system, in order of first appearance.

    Raises:
        ValueError: The reference was not rated.
    """
    systems = list(dict.fromkeys(name for own in titles for name in own))
    if reference not in systems:
        raise ValueError(f"the reference {reference!r} is not among {', '.join(systems)}")
    lines = []
    for name in systems:
        own = np.array([one[name] for one in titles if name in one])
        apart = np.array([one[name] - one[reference] for one in titles if name in one and reference in one])
        counts = draw_groups(len(apart), RESAMPLES, np.random.default_rng(0))
        means = counts @ apart / max(len(apart), 1)
        lines.append(
            Line(
                system=name, titles=len(own), mean=own.mean(),
                high=(own >= HIGH).mean(), low=(own <= LOW).mean(),
                wins=int((apart > 0).sum()), losses=int((apart < 0).sum()),
                difference=apart.mean() if len(apart) else np.nan, interval=percentiles(means),
            )
        )  # fmt: skip
    return lines


def table(lines: Iterable[Line], reference: str) -> str:
    """Formats lines as a Markdown table."""
    rows = [
        f"| system | titles | mean | ≥ {HIGH} | ≤ {LOW} | wins | losses | above {reference} |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for line in lines:
        low, high = line.interval
        against = f"{line.wins} | {line.losses} | {line.difference:+.2f} [{low:.2f}, {high:.2f}]"
        figures = f"{line.titles} | {line.mean:.2f} | {line.high:.0%} | {line.low:.0%}"
        rows.append(f"| {line.system} | {figures} | {against if line.system != reference else '– | – | –'} |")
    return "\n".join(rows)
