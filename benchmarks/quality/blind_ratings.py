"""Lists of similar titles for blind ratings, and the scores of the ratings.

``make`` draws titles of a finished nightly run by airings and writes two files: the lists for the reader,
whose columns are shuffled for each title, and the key with the system of each column. The reader rates each
column from 0 to 10. ``score`` combines ratings and key. Lists omit placeholders, titles of the same family
(editions and franchise) as the query, and all but the nearest title of another family, because users see
editions in one line. Systems with the same list share a column. ``titles`` writes the drawn titles and all
titles of the guide for an editor, whose lists ``make`` adds as the system "editor": what can be reached by
choosing from the same titles.

keys/NAME.json is the key of a set, committed before its ratings. ratings/NAME/ contains lists.md,
ratings.json ({number of the title: {column: rating}}), ratings-2.json of a second reader (sets before
2026-11-27 have one reader), and reader.json (kind of reader, model, date).
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase

import numpy as np
import pyarrow as pa

from benchmarks.quality.rating_scores import agreement, read_set, score, table
from storage.formats.vocabulary import PLACEHOLDER, SPLITS

MOST_AIRINGS, NEIGHBOURS = 30, 5
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
FOR_EDITORS = """\
# Lists of similar TV programmes, to be chosen

For each numbered programme, choose the five programmes of the guide below that a viewer who likes it would
most want to see next, best first. Judge kind, subject, audience and tone. Do not choose the programme itself,
other editions or parts of it, or two programmes of one franchise. Copy titles exactly.

Write JSON: {"1": ["title", "title", "title", "title", "title"], "2": [...]}
"""
EDITOR = "editor"  # system whose lists an editor chose


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
    titles: pa.Table,
    systems: dict[str, np.ndarray],
    rows: np.ndarray,
    *,
    seed: int,
    editor: Sequence[tuple[str, ...]] = (),
) -> list[Shown]:
    """Returns the lists of each row by all systems and an editor. Columns are shuffled by row and set."""
    lists_by_system = {name: nearest(vectors, titles, rows) for name, vectors in systems.items()}
    if editor:
        lists_by_system[EDITOR] = list(editor)
    rng, names = np.random.default_rng([seed, 1, *rows.tolist()]), titles["title"].to_pylist()
    shown = []
    for place, row in enumerate(rows):
        owners: dict[tuple[str, ...], list[str]] = {}
        for name in lists_by_system:
            owners.setdefault(lists_by_system[name][place], []).append(name)
        columns = list(owners.items())
        order = rng.permutation(len(columns))
        shown.append(Shown(names[row], [columns[i][0] for i in order], [columns[i][1] for i in order]))
    return shown


def write_titles(titles: pa.Table, rows: np.ndarray, file: Path) -> None:
    """Writes the titles of rows and all titles of the guide, without placeholders, for an editor."""
    names, is_offered = titles["title"].to_pylist(), np.array(titles["split"]) != SPLITS[PLACEHOLDER]
    queries = [f"{number}. {names[row]}" for number, row in enumerate(rows, 1)]
    offered = sorted({names[row] for row in np.flatnonzero(is_offered)})
    parts = [FOR_EDITORS, *queries, "", "## All programmes of the guide", "", *offered]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(parts) + "\n", encoding="utf-8")


def read_editor(file: Path, titles: pa.Table, rows: np.ndarray) -> list[tuple[str, ...]]:
    """Reads the lists of an editor for the titles of rows.

    Raises:
        ValueError: A list is missing, does not have five titles, or has a title that the guide lacks.
    """
    chosen, names = json.loads(file.read_text(encoding="utf-8")), {*titles["title"].to_pylist()}
    lists = [tuple(chosen.get(str(number), ())) for number in range(1, len(rows) + 1)]
    for number, one in enumerate(lists, 1):
        if len({*one}) != NEIGHBOURS or not {*one} <= names:
            raise ValueError(f"{file}: choose {NEIGHBOURS} titles of the guide for {number}, got {one}")
    return lists


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


def main() -> int:
    """Runs the command; returns the exit code."""
    from benchmarks.quality.similarities import SYSTEMS, Night

    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.blind_ratings", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("titles", help="write the drawn titles and all titles for an editor")
    listing.add_argument("--out", type=Path, required=True, help="Markdown file that the editor gets")
    making = commands.add_parser("make", help="write lists for a reader, and their key")
    making.add_argument("--lists", type=Path, required=True, help="Markdown file that the reader gets")
    making.add_argument("--editor", type=Path, help="JSON file with the lists of an editor")
    making.add_argument("--key", type=Path, required=True, help="JSON file that no reader may see")
    making.add_argument(
        "--systems", nargs="+", required=True, choices=SYSTEMS, metavar="SYSTEM", help=", ".join(SYSTEMS)
    )
    for drawing in (listing, making):
        drawing.add_argument("--home", type=Path, required=True, help="home of a finished night")
        drawing.add_argument("--titles", type=int, default=50, help="how many to draw")
        drawing.add_argument(
            "--skip", type=int, default=0, help="titles that earlier sets of this seed have drawn"
        )
        drawing.add_argument("--seed", type=int, default=1)
    scoring = commands.add_parser("score", help="print what the ratings of sets say, together")
    scoring.add_argument("sets", type=Path, nargs="+", help="folders with ratings.json")
    scoring.add_argument("--reference", default="title_only", help="system that the others are compared with")
    options = parser.parse_args()
    try:
        if options.command == "score":
            rated = [one for folder in options.sets for one in read_set(folder)]
            print(table(score(rated, options.reference), options.reference))
            correlation, lists = agreement(options.sets)
            if lists:
                print(f"\nTwo readers rated {lists} lists: r = {correlation:.2f}")
            return 0
        night = Night.newest(options.home)
        rows = draw(night.titles, options.titles, seed=options.seed, skip=options.skip)
        if options.command == "titles":
            write_titles(night.titles, rows, options.out)
            return 0
        editor = read_editor(options.editor, night.titles, rows) if options.editor else ()
    except ValueError as error:
        parser.error(str(error))
    vectors = {name: SYSTEMS[name](night) for name in options.systems}
    shown = make_lists(night.titles, vectors, rows, seed=options.seed, editor=editor)
    write_lists(shown, options.lists)
    about = {
        "guide": options.home.name,
        "titles_of_guide": len(night.titles),
        "seed": options.seed,
        "skip": options.skip,
    }
    write_key(shown, options.key, {**about, "systems": [*options.systems, *([EDITOR] if editor else [])]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
