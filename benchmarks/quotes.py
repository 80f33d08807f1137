"""Writes the figures that the documentation quotes: links whose definition names a claim.

A page writes ``[29.6 s][night]`` and defines ``[night]: benchmarks/README.md#nightly "nightly run"``,
the section and the name of a claim or its beginning, in which ``*`` stands for any text. ``; ratio to RIVAL``
and ``; value of RIVAL`` after the name select the ratio or the rival's value. The first number of the text
is replaced, in the unit of the claim, or in percent if only the text contains "%". Figures of sections that
have not been measured do not change.
"""

import fnmatch
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.claims import ROOT, number
from benchmarks.history import Measurement, latest
from benchmarks.page import anchor

DEFINITION = re.compile(r'^\[([\w-]+)\]: \S*benchmarks/README\.md#([\w-]+) "([^"]*)"$', re.MULTILINE)
QUOTE = re.compile(r"\[([^\]]*\d[^\]]*)\]\[([\w-]+)\]")
WITHOUT_CLAIM = re.compile(r"\[[^\]]*\d[^\]]*\]\(\S*benchmarks/README\.md#[^)]*\)")
NUMBER = re.compile(r"\d[\d,]*\.?\d*|\.\d+")
SELECTED = re.compile(r"(.*?)(?:; (ratio to|value of) (.*))?")


def pages() -> list[Path]:
    """Returns the documents that may quote figures."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def render(text: str, history: Sequence[Measurement]) -> str:
    """Returns a document with the newest figures."""
    values = {name: (value, percent) for name, value, percent in _values(text, history)}

    def replace(quote: re.Match[str]) -> str:
        words, name = quote.groups()
        if name not in values:
            return quote[0]
        value, percent = values[name]
        return f"[{_with_number(words, value * (100 if '%' in words and not percent else 1))}][{name}]"

    return QUOTE.sub(replace, text)


def invalid(text: str, history: Sequence[Measurement]) -> list[str]:
    """Returns links with a number but no claim, and definitions that are unused or name an unknown claim."""
    defined = {name: section for name, section, _ in DEFINITION.findall(text)}
    measured = {anchor(name) for name in latest(history)}
    values = {name for name, *_ in _values(text, history)}
    unknown = [name for name, section in defined.items() if section in measured and name not in values]
    used = {name for _, name in QUOTE.findall(text)}
    return [*WITHOUT_CLAIM.findall(text), *unknown, *sorted(defined.keys() - used)]


def _values(text: str, history: Sequence[Measurement]) -> Iterator[tuple[str, float, bool]]:
    """Yields the names of definitions, the values that they select, and whether these are in percent."""
    sections = {anchor(name): measured for name, measured in latest(history).items()}
    for name, section, title in DEFINITION.findall(text):
        claim_name, what, rival = SELECTED.fullmatch(title).groups()  # pyright: ignore[reportOptionalMemberAccess]
        claims = sections[section].claims if section in sections else ()
        for claim in sorted(claims, key=lambda claim: claim.name != claim_name):  # the exact name first
            matches = fnmatch.fnmatchcase(claim.name, f"{claim_name}*")
            if matches and fnmatch.fnmatchcase(claim.rival, rival or "*"):
                value = {"ratio to": claim.ratio, "value of": claim.rival_value}.get(what, claim.value)
                if value is not None:
                    yield name, value, "%" in claim.name
                    break


def _with_number(words: str, value: float) -> str:
    old = NUMBER.search(words)
    assert old is not None  # QUOTE requires a digit
    new = number(value)
    new = new.removeprefix("0") if old[0].startswith(".") and "." in new else new
    return words[: old.start()] + new + words[old.end() :]


def update(history: Sequence[Measurement]) -> None:
    """Writes all documents whose figures have changed."""
    for file in pages():
        text = file.read_text(encoding="utf-8")
        if (new := render(text, history)) != text:
            file.write_text(new, encoding="utf-8")
