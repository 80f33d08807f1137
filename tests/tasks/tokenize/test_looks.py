"""The look that chooses lines to search: it may choose too many, never too few."""

import gzip
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lxml import etree

from tasks.tokenize.looks import LOOK_FROM, holdings, look, loosened
from tasks.tokenize.marks import PATTERNS, take_all_marks, take_marks

CASED = [character for character in map(chr, [*range(0xD800), *range(0xE000, 0x110000)]) if character.lower() != character or character.upper() != character]


def test_letters_of_patterns_ignore_case_as_in_python() -> None:
    column = pa.array(CASED)
    for letter in sorted({character.lower() for _, _, pattern in PATTERNS for character in pattern if character.isalpha()}):
        to_python = {character for character in CASED if re.fullmatch(letter, character, re.IGNORECASE)}
        to_look = pc.match_substring_regex(column, pattern=f"^(?:{loosened([letter])})$", ignore_case=True).to_pylist()  # pyright: ignore[reportAttributeAccessIssue]
        assert to_python <= {character for character, found in zip(CASED, to_look, strict=True) if found}, letter


def test_digits_of_all_scripts_are_found() -> None:
    lines = [f"Folge {digit}" for digit in map(chr, range(0x110000)) if digit.isdecimal()] * 5
    assert look(lines, holdings(lines), {2: loosened([r"\bfolge *\d{1,5}(?!\d)"])})[2].all()


@pytest.mark.parametrize(
    ("pattern", "loose"),
    [
        (r"\bs ?\d{1,5}\b(?: *[/-] *\d{1,5})?", r"s ?\p{Nd}+(?: *[/-] *\p{Nd}+)?"),
        (r"[\(\[](?<!\w.) *(?:r|e) *[\)\]]", r"[\(\[] *(?:r|e) *[\)\]]"),
        (r"del(?= *(?:$|[-–:,(]))|x{0,12}(?!/\d)", r"del|x*"),
    ],
)
def test_assertions_and_counts_are_loosened(pattern: str, loose: str) -> None:
    assert loosened([pattern]) == loose + "|[İı]"


def test_rows_without_a_mark_are_left_out() -> None:
    lines = ["Babylon 5", "Studio 54", "Folge 12", "Tatort"] * 1000
    assert np.flatnonzero(look(lines, holdings(lines), {2: loosened([r"\bfolge *\d{1,5}"])})[2]).tolist() == list(range(2, 4000, 4))


def test_titles_of_real_guides_lose_the_same_marks_together(guidespace_data: Path) -> None:
    for name in ("SK1", "GR1"):
        (file,) = (guidespace_data / "guides").glob(f"*_{name}_*.xml.gz")
        with gzip.open(file) as opened:
            found = {text for _, element in etree.iterparse(opened, tag=("title", "sub-title"), recover=True) if (text := " ".join((element.text or "").split()))}
        texts = sorted(found)
        assert len(texts) >= LOOK_FROM
        displays, marks = take_all_marks(texts)
        assert [(display, marks.get(row, set())) for row, display in enumerate(displays)] == [take_marks(text) for text in texts]
