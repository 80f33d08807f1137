"""The pages with measured figures are generated from the history, whose commits exist, and quotes agree."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import figures, page
from benchmarks.history import is_commit, latest, read_history
from storage.stages import ROOT

HISTORY = read_history()
QUOTING = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
QUOTE = re.compile(r"\[([^\]]*\d[^\]]*)\]\((?:\.\./)?benchmarks/README\.md#([\w-]+)\)")


def is_shallow() -> bool:
    command = ["git", "rev-parse", "--is-shallow-repository"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    return done.stdout.strip() != "false"


@pytest.mark.skipif(is_shallow(), reason="the clone is shallow, or there is no git history")
def test_the_commits_of_all_measurements_exist() -> None:
    stored = json.loads((ROOT / "benchmarks/quality/quality.json").read_text(encoding="utf-8"))
    commits = {system["commit"] for systems in stored.values() for system in systems.values()}
    hashes = {each for text in commits for each in re.findall(r"\b[0-9a-f]{7,}\b", text)}
    named = {each.commit for each in HISTORY} | hashes
    assert [name for name in sorted(named) if not is_commit(name)] == []
    assert not is_commit("0123456")


def test_the_pages_are_generated_from_the_history() -> None:
    """Run ``python -m benchmarks --render`` if a docstring or the history has changed."""
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.render(text, HISTORY) == text
    assert figures.render(HISTORY) == figures.PAGE.read_text(encoding="utf-8")
    assert figures.plot(HISTORY) == figures.PLOT.read_text(encoding="utf-8")


def test_docs_figures_fits_a_screen() -> None:
    assert len(figures.FIGURES) == 10 and figures.render(HISTORY).count("\n") <= 30
    assert max(len(figure.label) for figure in figures.FIGURES) <= 36  # the width of a plot


def disagreements(text: str) -> Iterator[str]:
    """Numbers in links to sections of the benchmarks that no value or ratio of the section rounds to."""
    sections = {name.lower().replace(",", "").replace(" ", "-"): one for name, one in latest(HISTORY).items()}
    for words, anchor in QUOTE.findall(text):
        claims = sections[anchor].claims if anchor in sections else ()
        values = {value for claim in claims for value in (claim.value, claim.rival_value, claim.ratio)} - {
            None
        }
        for digits in re.findall(r"\d[\d,]*\.?\d*|\.\d+", words):
            number, places = float(digits.replace(",", "")), len(digits.partition(".")[2])
            scales = (100, 1) if "%" in words else (1, 1000, 0.001)
            if not any(
                abs(value * scale - number) <= 0.51 * 10**-places for value in values for scale in scales
            ):
                yield f"{anchor}: {digits} of {words!r}"


def test_numbers_that_no_benchmark_measured_are_found() -> None:
    (one,) = [each for each in HISTORY if each.section == "text"][-1:]
    exact = f"{one.claims[0].value:,.0f}"
    assert not [*disagreements(f"[{exact} titles](../benchmarks/README.md#text)")]
    assert [*disagreements("[123,456,789 titles](../benchmarks/README.md#text)")]
    assert [*disagreements(f"[{exact} titles](../benchmarks/README.md#none)")]


@pytest.mark.parametrize("file", QUOTING, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_quoted_figures_are_those_of_the_benchmarks(file: Path) -> None:
    assert [*disagreements(file.read_text(encoding="utf-8"))] == []


def test_the_readme_and_the_page_on_scale_quote_by_reference() -> None:
    assert all(
        QUOTE.search((ROOT / name).read_text(encoding="utf-8")) for name in ("README.md", "docs/scale.md")
    )
