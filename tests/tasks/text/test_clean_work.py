"""Cleaning takes work in proportion to the text, whatever is nested in it: rounds, characters, calls are
counted.

``unicodedata.normalize`` counts what it takes to sort marks by insertion. A search by a regular expression
counts as one call: none here has a choice to take back.
"""

import sys
import unicodedata
from itertools import groupby
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.text import clean as text_module
from tasks.text.clean import clean

CHARACTER = 40  # units of work at most, in as many rounds as below
START = 3_000
ROUNDS = 4
PIECES = ["&", "amp;", "#38;", "&am", "p;", "#173;", "lt;", "gt;", "&#824;", "&zwj;", "&bsol;"]
PIECES += ["<", ">", "<b", "b", "/", " href=", "=", "'", "Ã", "Â", "â€‹", "‹", "\x83", "\xad"]
PIECES += [";", "\\", "n", " ", "a", "é"]
PIECES += ["\u200b", "\u200c", "\u200d", "\u0301", "\u0323", "\u0338", "\u0f73", "\u3099", "\u037e", "\u1161"]
PIECES += ["\ufffd", "한", "각"]
ATTACKS = {
    "references": ("&", "amp;", ""),
    "numbers": ("&", "#38;", ""),
    "tags": ("", "<b", ">"),
    "tags with quotes": ("<b‹", "b", ">>"),
    "closed tags": ("", "<b<", ">>"),
    "marks": ("a", "\u0301\u0323", ""),
    "marks of two": ("a", "\u0f73", ""),
    "joiners": ("é", "\u200d", "a"),
    "hidden in names": ("", "&am&#173;", "p;#173;"),
    "line breaks in tags": ("", "<b\\n", "=>"),
    "strokes": ("", "<b >&#824;", "=>"),
    "spaces": ("a", " \\n", "b"),
    "opened": ("", "<b =", ""),
    "ampersands": ("", "&", ""),
    "semicolons": ("&", "amp", ";"),
    "overlong number": ("&#", "0", "38;"),
}


class Work:
    """Number of operations that cleaning a text takes."""

    def __init__(self) -> None:
        self.units = self.rounds = 0

    def count(self, function, cost, a_round: bool = False):
        def call(*arguments):
            self.units += cost(arguments[-1])
            self.rounds += a_round
            return function(*arguments)

        return call

    def profile(self, _frame, event: str, _function) -> None:
        self.units += event in ("call", "c_call")


def sorting(text: str) -> int:
    """Counts the steps of ``unicodedata.normalize``: one per letter, and those that sort combining marks."""
    letters = "".join(unicodedata.normalize("NFD", letter) for letter in text)
    steps = len(letters)
    for is_mark, run in groupby(map(unicodedata.combining, letters), bool):
        marks = list(run) if is_mark else []
        steps += len(marks) ** 2 // 4 if marks != sorted(marks) else 0
    return steps


def work(text: str) -> Work:
    done = Work()
    unicode = SimpleNamespace(combining=unicodedata.combining, is_normalized=unicodedata.is_normalized)
    unicode.normalize = done.count(unicodedata.normalize, sorting)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "unicodedata", unicode)
        patch.setattr(text_module, "_clean_once", done.count(text_module._clean_once, len, a_round=True))
        before = sys.getprofile()
        sys.setprofile(done.profile)
        try:
            cleaned = clean(text)
        finally:
            sys.setprofile(before)
    assert clean(cleaned) == cleaned
    return done


def bounded(text: str) -> None:
    done = work(text)
    may_be_doubled = (
        text_module._DOUBLE_ENCODING.search(text) or "&" in text
    )  # each undoing halves what is not ASCII
    assert done.rounds <= ROUNDS + (len(text).bit_length() if may_be_doubled else 0)
    assert done.units <= START + CHARACTER * len(text), (text[:80], len(text), done.units / len(text))


@pytest.mark.parametrize("attack", ATTACKS)
def test_known_attacks(attack: str) -> None:
    before, again, after = ATTACKS[attack]
    bounded(before + again * 20_000 + after * 20_000)


@pytest.mark.slow
@settings(max_examples=300)
@given(*[st.lists(st.sampled_from(PIECES), max_size=6).map("".join)] * 4, st.integers(1, 400))
def test_any_nesting(before: str, opening: str, middle: str, closing: str, depth: int) -> None:
    bounded(before + opening * depth + middle + closing * depth)
