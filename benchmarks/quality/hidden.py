"""Precision and coverage of ``guidespace enrich`` on hidden categories, of channels and of shows.

The categories of a random fifth of the channels (or shows) of each guide are removed. A night runs on what is
left, enriches it, and the written categories are compared with the removed ones. Only titles of which all
categories were removed count, because the others are in the model. A written category is correct if it was
removed; generic ones ("series") are omitted.

Figures are by title, and by programme, in which copies within a show count.
"""

import functools
import gzip
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from benchmarks.claims import Claim, guides, mean_interval, run
from benchmarks.processes import run_guidespace
from tasks.preprocess.categories import map_category, read_mapping
from tasks.text.titles import parse_title

GUIDES = ("US1", "ZA1", "NL1", "NO1", "GR1")  # development guides (docs/benchmark.md)
SHARE = 0.2  # share of the channels or shows whose categories are hidden
COVERAGE = {0.9: 0.66, 0.8: 0.8}  # minimum precision: target of the coverage of hidden shows


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
    selected_rows = np.random.default_rng(seed).permutation(len(names))[: max(1, round(share * len(names)))]
    hidden = {names[index] for index in selected_rows}
    removed_categories: dict[str, set[str]] = defaultdict(set)
    remaining_names: set[str] = set()
    for programme, group in zip(tree.iter("programme"), groups, strict=True):
        categories = categories_of(programme)
        if group in hidden:
            removed_categories[show_of(programme)] |= categories
            for element in programme.findall("category"):
                programme.remove(element)
        elif categories:
            remaining_names.add(show_of(programme))
    with gzip.open(file, "wb", compresslevel=1) as stream:
        tree.write(stream, "utf-8", xml_declaration=True)
    truth = {
        show: frozenset(categories)
        for show, categories in removed_categories.items()
        if categories and show not in remaining_names
    }
    return HiddenGuide(file, truth)


def compare(guide: HiddenGuide, enriched: Path) -> tuple[list[float], list[float]]:
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


def measure_guide(guide: Path, what: str) -> tuple[int, dict[float, tuple[list[float], list[float]]]]:
    """Hides categories of channels or shows of a guide, runs a night and enriches the guide.

    Returns:
        Number of titles with hidden categories, and the results of ``compare`` by minimum precision.
    """
    with tempfile.TemporaryDirectory() as folder:
        home, file, enriched = (Path(folder) / name for name in ("home", "guide.xml.gz", "enriched.xml.gz"))
        hidden = hide(guide, file, what, SHARE, seed=0)
        run_guidespace("nightly", "--feed", file, "--home", home)
        results = {}
        for precision in COVERAGE:
            run_guidespace("enrich", file, enriched, "--home", home, "--min-precision", precision)
            results[precision] = compare(hidden, enriched)
        return len(hidden.truth), results


def measure(quick: bool) -> list[Claim]:
    """Measures precision and coverage by guide, and their means over guides."""
    claims: list[Claim] = []
    names = GUIDES[3:4] if quick else GUIDES
    for what in ("shows", "channels"):
        by_precision = defaultdict(list)
        for name in names:
            print(f"hidden {what}: {name}", file=sys.stderr, flush=True)
            count, results = measure_guide(guides(name)[0], what)
            for precision, (by_title, by_programme) in results.items():
                condition = f"hidden {what}, {name}, {count} titles, {precision:g} requested"
                claims.append(Claim(f"{condition}: precision", by_title[0], better=None))
                claims.append(Claim(f"{condition}: coverage", by_title[1], better=None))
                by_precision[precision].append((*by_title, *by_programme))
        for precision, values in by_precision.items():
            coverage = COVERAGE[precision] if what == "shows" else None
            condition = f"hidden {what}, mean of {len(names)} guides, {precision:g} requested"
            targets = {"precision": precision - 0.01, "coverage": coverage}
            targets |= {"precision by programme": precision - 0.01, "coverage by programme": coverage}
            for (name, target), column in zip(targets.items(), zip(*values, strict=True), strict=True):
                mean, interval = float(np.mean(column)), mean_interval(column)
                better = None if target is None else "more"
                claims.append(
                    Claim(f"{condition}: {name}", mean, aim=target, better=better, interval=interval)
                )
    return claims


if __name__ == "__main__":
    sys.exit(run(measure, __doc__ or ""))
