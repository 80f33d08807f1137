"""Properties of all titles."""

import re
import string

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tasks.text.marks import KINDS
from tasks.text.titles import clean_text, parse_title
from tests.tasks.text.marked_titles import STRIPPED
from tests.tasks.text.plain_titles import CLEANED, NAMES


def test_long_titles_are_parsed_quickly():
    title = parse_title("Euronews Now. " * 200 + "(" * 300 + "Folge " * 200)
    assert title.show_key.startswith("euronews now euronews now")


FRAGMENTS = st.sampled_from(
    [raw for raw, _, _ in STRIPPED]
    + NAMES
    + [raw for raw, _ in CLEANED]
    + [
        "(",
        ")",
        "[",
        "]",
        "#",
        " - ",
        ": ",
        "&",
        "amp;",
        "<",
        ">",
        "b",
        "Ep. ",
        "S",
        "1",
        "20",
        "2001",
        "(2001)",
        "(R)",
        " Teil ",
        "New: ",
        "LIVE ",
        "é",
        "\u0301",
        "Ã",
        "\u00ad",
        ",",
        "/",
        "…",
    ]
)


@settings(max_examples=150)
@given(
    st.one_of(
        st.lists(FRAGMENTS, max_size=6).map("".join),
        st.text(max_size=40),
        st.text(alphabet=string.ascii_letters + string.digits + "()[]<>&;#:/-. ", max_size=30),
    )
)
@example("Title - Part 3 (2001)")
@example("Escort N5 - Part 3 (HARD)")
@example("&amp;lt;b&amp;gt;News")
def test_display_of_a_display_is_itself(raw: str):
    title = parse_title(raw)
    again = parse_title(title.display)
    assert again.display == title.display
    assert again.show_key == title.show_key
    assert clean_text(clean_text(raw)) == clean_text(raw)


@settings(max_examples=150)
@given(st.one_of(st.lists(FRAGMENTS, min_size=1, max_size=6).map("".join), st.text(max_size=40)))
def test_a_title_with_letters_is_never_empty(raw: str):
    title = parse_title(raw)
    if any(character.isalnum() for character in clean_text(raw)):
        assert any(character.isalnum() for character in title.show_key)
        assert title.display
    assert set(title.marks) <= {mark for mark in title.marks if re.fullmatch(r"<year:\d{4}>", mark)} | {
        f"<{kind}>" for kind in KINDS
    }
