"""Lists of similar titles for blind ratings, and the scores of the ratings.

``make`` draws titles of a finished nightly run by airings and writes two files: the lists for the reader,
whose columns are shuffled for each title, and the key with the system of each column. The reader rates each
column from 0 to 10. ``score`` combines ratings and key. Lists omit placeholders, titles of the same family
(editions and franchise) as the query, and all but the nearest title of another family, because users see
editions in one line. Systems with the same list share a column.

ratings/NAME/ contains a set: lists.md, key.json, ratings.json ({number of the title: {column: rating}}) and
reader.json (kind of reader, date).
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase

import numpy as np
import pyarrow as pa

from storage.formats.vocabulary import PLACEHOLDER, SPLITS
from tasks.scoring.bootstrap import draw_groups, percentiles

MOST_AIRINGS, NEIGHBOURS, RESAMPLES = 30, 5, 10_000
HIGH, LOW, BEST = 7, 3, 10  # thresholds of good and bad lists, and the best rating
FOR_READERS = """\
# Lists of similar TV programmes, to be rated

Each section is titled with a TV programme; each lettered line below it lists five other programmes that a
programme guide offers to a viewer who likes that one, best first. The letters mean nothing from one section
to the next.

Rate each line as a whole, 0 to 10: how well would a viewer who likes the programme be served by this list
of five? 10: all five are what that viewer would want to see next; 7: good, with an odd one; 5: half of them
fit; 3: one fits, or all do only loosely; 0: none has anything to do with it. Judge kind, subject, audience
and tone by what you know of the programmes; where a title is not known to you, by what it says. Use the whole
scale and read every line.

Write JSON with every section and every letter: {"1": {"A": 6, "B": 3.5}, "2": {"A": 8}}
"""


@dataclass(frozen=True)
class Shown:
    """A title that was drawn for rating, with the lists of neighbours that systems returned.

    Attributes:
        title: Title as in the guide.
        lists: The distinct lists of neighbours, in the order of the columns.
        systems: The systems that returned each list.
    """

    title: str
    lists: list[tuple[str, ...]]
    systems: list[list[str]]


def draw(titles: pa.Table, count: int, *, seed: int, skip: int = 0) -> np.ndarray:
    """Draws rows of titles without replacement in proportion to min(airings, 30), without placeholders.

    Titles are put into one random order (Efraimidis, Spirakis. Weighted random sampling with a reservoir.
    2006), of which ``skip`` are passed over: sets of one seed with different skips share no title.

    Raises:
        ValueError: There are fewer than ``skip + count`` titles.
    """
    weights = np.minimum(titles["airings"].to_numpy(), MOST_AIRINGS).astype(float)
    weights[np.array(titles["split"].to_pylist()) == SPLITS[PLACEHOLDER]] = 0
    there = int((weights > 0).sum())
    if skip + count > there:
        raise ValueError(f"{skip + count} titles are to be drawn, the guide has {there}: draw fewer")
    waits = -np.log(1 - np.random.default_rng(seed).random(len(weights)))
    waits = np.divide(waits, weights, out=np.full(len(weights), np.inf), where=weights > 0)
    return np.argsort(waits, kind="stable")[skip : skip + count]


def nearest(vectors: np.ndarray, titles: pa.Table, rows: np.ndarray) -> list[tuple[str, ...]]:
    """Returns the five titles with the largest cosine to each row, best first.

    The list has at most one title per family, none of the family of the row, and no placeholder.

    Args:
        vectors: float32 (titles, dim), unit norm or zero.
        titles: Table with title, family and split; one row per vector.
        rows: Rows of the titles whose neighbours are returned.
    """
    names = titles["title"].to_pylist()
    families = np.array(titles["family"].to_pylist())
    offered = (np.array(titles["split"].to_pylist()) != SPLITS[PLACEHOLDER]) & vectors.any(axis=1)
    lists = []
    for row in rows:
        allowed = np.flatnonzero(offered & (families != families[row]))
        ordered = allowed[np.argsort(-(vectors[allowed] @ vectors[row]), kind="stable")]
        firsts = np.sort(np.unique(families[ordered], return_index=True)[1])
        lists.append(tuple(names[other] for other in ordered[firsts[:NEIGHBOURS]]))
    return lists


def make_lists(
    titles: pa.Table, systems: dict[str, np.ndarray], rows: np.ndarray, *, seed: int
) -> list[Shown]:
    """Returns the lists of each row by every system. Columns are shuffled by row and set."""
    lists_by_system = {name: nearest(vectors, titles, rows) for name, vectors in systems.items()}
    rng, names = np.random.default_rng([seed, 1, *rows.tolist()]), titles["title"].to_pylist()
    shown = []
    for place, row in enumerate(rows):
        owners: dict[tuple[str, ...], list[str]] = {}
        for name in systems:
            owners.setdefault(lists_by_system[name][place], []).append(name)
        columns = list(owners.items())
        order = rng.permutation(len(columns))
        shown.append(Shown(names[row], [columns[i][0] for i in order], [columns[i][1] for i in order]))
    return shown


def write_lists(shown: Sequence[Shown], file: Path) -> None:
    """Writes the lists for the reader as Markdown."""
    parts = [FOR_READERS]
    for number, one in enumerate(shown, 1):
        lines = [f"- {letter}: {' | '.join(titles)}" for letter, titles in zip(ascii_uppercase, one.lists)]
        parts.append(f"## {number}. {one.title}\n\n" + "\n".join(lines) + "\n")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(parts), encoding="utf-8")


def write_key(shown: Sequence[Shown], file: Path, about: dict[str, object]) -> None:
    """Writes the systems of each column, with facts about the set."""
    columns = {str(number): dict(zip(ascii_uppercase, one.systems)) for number, one in enumerate(shown, 1)}
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"  {json.dumps(number)}: {json.dumps(systems)}" for number, systems in columns.items()]
    head = json.dumps(about, ensure_ascii=False)[1:-1]
    file.write_text(f'{{{head}, "columns": {{\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")


def read_set(folder: Path) -> list[dict[str, float]]:
    """Reads the ratings of a set; returns a dict from system to rating for each title.

    Raises:
        ValueError: Ratings do not have the titles and columns of the key, or are not from 0 to 10.
    """
    columns = json.loads((folder / "key.json").read_text(encoding="utf-8"))["columns"]
    ratings = json.loads((folder / "ratings.json").read_text(encoding="utf-8"))
    expected, rated = (
        {(number, letter) for number, own in every.items() for letter in own} for every in (columns, ratings)
    )
    if expected != rated:
        missing, unknown = sorted(expected - rated)[:5], sorted(rated - expected)[:5]
        raise ValueError(f"{folder}: rate every column once; missing {missing}, not asked for {unknown}")
    wrong = [
        (number, own)
        for number, own in ratings.items()
        if not all(0 <= value <= BEST for value in own.values())
    ]
    if wrong:
        raise ValueError(f"{folder}: ratings are 0 to {BEST}, got {wrong[0]}")
    return [
        {name: float(ratings[number][letter]) for letter, names in own.items() for name in names}
        for number, own in columns.items()
    ]


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


def main() -> int:
    """Runs the command; returns the exit code."""
    from benchmarks.quality.similarities import SYSTEMS, Night

    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.blind_ratings", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="write lists for a reader, and their key")
    making.add_argument("--home", type=Path, required=True, help="home of a finished night")
    making.add_argument("--lists", type=Path, required=True, help="Markdown file that the reader gets")
    making.add_argument("--key", type=Path, required=True, help="JSON file that no reader may see")
    making.add_argument(
        "--systems", nargs="+", required=True, choices=SYSTEMS, metavar="SYSTEM", help=", ".join(SYSTEMS)
    )
    making.add_argument("--titles", type=int, default=50, help="how many to draw")
    making.add_argument(
        "--skip", type=int, default=0, help="titles that earlier sets of this seed have drawn"
    )
    making.add_argument("--seed", type=int, default=1)
    scoring = commands.add_parser("score", help="print what the ratings of sets say, together")
    scoring.add_argument("sets", type=Path, nargs="+", help="folders with key.json and ratings.json")
    scoring.add_argument("--reference", default="title_only", help="system that the others are compared with")
    options = parser.parse_args()
    try:
        if options.command == "score":
            rated = [one for folder in options.sets for one in read_set(folder)]
            print(table(score(rated, options.reference), options.reference))
            return 0
        night = Night.newest(options.home)
        rows = draw(night.titles, options.titles, seed=options.seed, skip=options.skip)
    except ValueError as error:
        parser.error(str(error))
    shown = make_lists(
        night.titles, {name: SYSTEMS[name](night) for name in options.systems}, rows, seed=options.seed
    )
    write_lists(shown, options.lists)
    about = {
        "guide": options.home.name,
        "titles_of_guide": len(night.titles),
        "seed": options.seed,
        "skip": options.skip,
    }
    write_key(shown, options.key, {**about, "systems": options.systems})
    return 0


if __name__ == "__main__":
    sys.exit(main())
