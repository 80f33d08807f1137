"""Precision and coverage of ``guidespace enrich`` on hidden categories, of channels or of shows.

``python -m benchmarks.quality.hidden GUIDE … [--hide channels|shows] [--share 0.2] [--seeds 1]`` removes the
categories of a random share of the channels (or shows) of each guide, runs a night of what is left, enriches
it, and compares the written categories with the removed ones. Only titles of which all categories were
removed count, because the others are in the model. A written category is correct if it was removed.

Columns: titles and programmes with hidden categories; and for titles and programmes (airings, so that copies
within a show count) the precision of what is written and the coverage (share that gets a category).
"""

import argparse
import functools
import gzip
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from storage.stages import ROOT
from tasks.preprocess.categories import map_category, read_mapping
from tasks.text.titles import parse_title

PRECISIONS = (0.9, 0.8)


@dataclass(frozen=True)
class HiddenGuide:
    """A guide without the categories of some channels or shows.

    Attributes:
        file: The guide without these categories.
        truth: Hidden categories of each title (show key) of which all categories are hidden.
    """

    file: Path
    truth: Mapping[str, frozenset[str]]


def categories_of(programme: ElementTree.Element) -> frozenset[str]:
    """Returns the categories of a programme, split, and mapped to synonyms, without generic ones."""
    texts = ((element.text or "").strip() for element in programme.findall("category"))
    return frozenset(name for text in texts for name, reason in _map(text) if not reason)


@functools.cache
def _map(text: str) -> tuple[tuple[str, str], ...]:
    return map_category(text, read_mapping())


def show_of(programme: ElementTree.Element) -> str:
    """Returns the show key of the title of a programme."""
    return parse_title((programme.findtext("title") or "").strip()).show_key


def hide(guide: Path, file: Path, what: str, share: float, seed: int) -> HiddenGuide:
    """Writes a guide without the categories of a random share of its channels or shows.

    Args:
        guide: XMLTV file, gzip.
        file: File to write.
        what: "channels" or "shows" (franchises).
        share: Share of the channels or shows.
        seed: Seed of the choice.
    """
    with gzip.open(guide) as stream:
        tree = ElementTree.parse(stream)
    groups = [
        programme.get("channel", "") if what == "channels" else parse_title(show_of(programme)).family
        for programme in tree.iter("programme")
    ]
    names = sorted({*groups})
    chosen = np.random.default_rng(seed).permutation(len(names))[: max(1, round(share * len(names)))]
    hidden = {names[index] for index in chosen}
    removed: dict[str, set[str]] = defaultdict(set)
    left: set[str] = set()
    for programme, group in zip(tree.iter("programme"), groups, strict=True):
        categories = categories_of(programme)
        if group in hidden:
            removed[show_of(programme)] |= categories
            for element in programme.findall("category"):
                programme.remove(element)
        elif categories:
            left.add(show_of(programme))
    with gzip.open(file, "wb", compresslevel=1) as stream:
        tree.write(stream, "utf-8", xml_declaration=True)
    truth = {
        show: frozenset(categories) for show, categories in removed.items() if categories and show not in left
    }
    return HiddenGuide(file, truth)


def measure(guide: HiddenGuide, enriched: Path) -> tuple[list[float], list[float]]:
    """Returns precision and coverage by title and by programme of an enriched guide."""
    with gzip.open(enriched) as stream:
        programmes = [*ElementTree.parse(stream).iter("programme")]
    correct: dict[str, list[float]] = defaultdict(list)  # by show: NaN if nothing is written
    for programme in programmes:
        if (truth := guide.truth.get(show := show_of(programme))) is not None:
            written = categories_of(programme)
            correct[show].append(float(bool(written & truth)) if written else np.nan)
    by_programme = np.array([value for values in correct.values() for value in values])
    by_title = np.array([values[0] for values in correct.values()])
    return _precision_and_coverage(by_title), _precision_and_coverage(by_programme)


def _precision_and_coverage(correct: np.ndarray) -> list[float]:
    is_written = ~np.isnan(correct)
    return [float(correct[is_written].mean()) if is_written.any() else np.nan, float(is_written.mean())]


def _guidespace(*arguments: object) -> None:
    command = [sys.executable, "-m", "flows", *map(str, arguments)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    """Runs the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.hidden", description=__doc__)
    parser.add_argument("guides", type=Path, nargs="+", help="XMLTV files, gzip")
    parser.add_argument("--hide", choices=("channels", "shows"), default="channels")
    parser.add_argument("--share", type=float, default=0.2, help="share of the channels or shows")
    parser.add_argument("--seeds", type=int, default=1, help="repetitions with other channels or shows")
    options = parser.parse_args()
    print("| guide | titles | requested | titles: precision | coverage | programmes: precision | coverage |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for guide in options.guides:
        for seed in range(options.seeds):
            with tempfile.TemporaryDirectory() as folder:
                home, file = Path(folder) / "home", Path(folder) / "guide.xml.gz"
                hidden = hide(guide, file, options.hide, options.share, seed)
                _guidespace("nightly", "--feed", file, "--home", home)
                for precision in PRECISIONS:
                    enriched = Path(folder) / "enriched.xml.gz"
                    settings = "--min-precision", str(precision)
                    _guidespace("enrich", file, enriched, "--home", home, *settings)
                    titles, programmes = measure(hidden, enriched)
                    cells = " | ".join(f"{value:.3f}" for value in (*titles, *programmes))
                    name = guide.name.removesuffix(".xml.gz")
                    print(f"| {name} | {len(hidden.truth)} | {precision} | {cells} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
