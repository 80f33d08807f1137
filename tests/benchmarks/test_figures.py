"""The pages with measured figures are generated from the history, whose commits exist, and quotes agree."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from benchmarks import figures, page, quotes
from benchmarks.__main__ import FULL
from benchmarks.claims import Claim
from benchmarks.history import Measurement, is_commit, latest, read_history
from storage.stages import ROOT

HISTORY = read_history()


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


def test_a_quote_gets_the_newest_value_ratio_or_value_of_a_rival() -> None:
    claims = (
        Claim("night, seconds", 31.44, "first night", 62.88, better=None),
        Claim("share found before", 0.9731, better=None),
        Claim("share found", 0.25, better=None),
        Claim("waiting, %", 1.58, better=None),
    )
    history = [
        Measurement(section="a b, c", date="", commit="", machine="", minutes=1, load=1, claims=claims)
    ]

    def quoted(words: str, title: str, section: str = "a-b-c") -> str:
        text = f'[{words}][name]\n\n[name]: ../benchmarks/README.md#{section} "{title}"\n'
        assert quotes.invalid(text, history) == []
        return quotes.render(text, history)[1:].split("]")[0]

    assert quoted("**29.6 s**", "night") == "**31.4 s**"
    assert quoted("2 times", "night; ratio to first night") == "0.5 times"
    assert quoted(".1 times", "night; ratio to first night") == ".5 times"
    assert quoted("7 s", "night; value of first night") == "62.9 s"
    assert quoted("1 %", "share*") == "97.3 %"
    assert quoted("0", "share found") == "0.25"
    assert quoted("1 %", "waiting") == "1.58 %"
    assert quoted("1 s", "night", "not-measured") == "1 s"


def test_numbers_without_a_claim_are_invalid() -> None:
    inline = "[1 s](../benchmarks/README.md#nightly)"
    assert quotes.invalid(f"{inline} and [figures](../benchmarks/README.md)", HISTORY) == [inline]
    definition = '\n[name]: ../benchmarks/README.md#nightly "no such claim"\n'
    assert quotes.invalid(f"[1 s][name]{definition}", HISTORY) == ["name"]
    assert quotes.invalid(definition.replace("no such claim", "nightly run"), HISTORY) == ["name"]


@pytest.mark.parametrize("file", quotes.pages(), ids=lambda file: file.relative_to(ROOT).as_posix())
def test_quoted_figures_are_those_of_the_benchmarks(file: Path) -> None:
    """Run ``python -m benchmarks --render`` if only numbers differ."""
    text = file.read_text(encoding="utf-8")
    assert quotes.invalid(text, HISTORY) == [], "benchmarks/quotes.py explains how figures are quoted"
    assert quotes.render(text, HISTORY) == text
    names = *page.MODULES, *(name + page.SUFFIX for name in FULL), *latest(HISTORY)
    sections = {page.anchor(name) for name in names}
    assert {section for _, section, _ in quotes.DEFINITION.findall(text)} <= sections
