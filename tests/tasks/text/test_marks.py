"""Marks of titles."""

import pytest

from tasks.text.titles import parse_title
from tests.tasks.text.marked_titles import STRIPPED


@pytest.mark.parametrize(("raw", "display", "marks"), STRIPPED)
def test_marks_are_removed_and_become_tokens(raw: str, display: str, marks: set[str]):
    title = parse_title(raw)
    assert title.display == display
    assert set(title.marks) == marks


def test_every_airing_of_a_show_has_one_key():
    airings = [
        "Rote Rosen",
        "Rote Rosen (888)",
        "ROTE ROSEN (3586)",
        "Rote Rosen (Wdh.)",
        "Rote Rosen, Folge 12",
        "Rote  Rosen\u200b [R]",
        "Rote Rosen...",
        "New: Rote Rosen",
    ]
    assert {parse_title(airing).show_key for airing in airings} == {"rote rosen"}
