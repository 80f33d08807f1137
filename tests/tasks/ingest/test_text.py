import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.ingest.text import clean


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("Tatort", "Tatort"),
        ("  Das   Traumschiff \n", "Das Traumschiff"),
        ("Homes\\n\\tUnder the Hammer", "Homes Under the Hammer"),
        ("Law &amp;amp; Order", "Law & Order"),
        ("Caf&eacute;", "Café"),
        ("Cafe\u0301", "Café"),
        ("\x86Tele\x87novela\x8a2", "Telenovela 2"),
        ("\ufeffNews\u200b at\u00a0Ten", "News at Ten"),
        ('<img src="x.png"/>Film <b>noir</b>', "Film noir"),
        ("a < b > c", "a < b > c"),
        ("👩\u200d🚀 im All", "👩\u200d🚀 im All"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("a\u200db", "ab"),
        ("\u200b", ""),
        ("", ""),
        ("1408", "1408"),
        ("★ Gala ★", "★ Gala ★"),
    ],
)
def test_known_texts(dirty: str, expected: str) -> None:
    assert clean(dirty) == expected


@given(st.text())
def test_any_text_ends_clean(text: str) -> None:
    found = clean(text)
    assert unicodedata.is_normalized("NFC", found)
    assert found == found.strip() and "  " not in found and "\n" not in found and "\x00" not in found


@given(st.text(st.characters(exclude_characters="&")))
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)
