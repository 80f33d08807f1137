import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.ingest.text import all_clean, clean, clean_all


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("Tatort", "Tatort"),
        ("  Das   Traumschiff \n", "Das Traumschiff"),
        ("Homes\\n\\tUnder the Hammer", "Homes Under the Hammer"),
        ("Law &amp;amp; Order", "Law & Order"),
        ("Caf&eacute;", "Café"),
        ("CapÃ­tulo", "Capítulo"),
        ("MÃ¼nchen Mord", "München Mord"),
        ("Veterinář ze Skalnatých hor", "Veterinář ze Skalnatých hor"),
        ("Cafe\u0301", "Café"),
        ("\x86Tele\x87novela\x8a2", "Telenovela 2"),
        ("\ufeffNews\u200b at\u00a0Ten", "News at Ten"),
        ('<img src="x.png"/>Film <b>noir</b>', "Film noir"),
        ("a < b > c", "a < b > c"),
        ("<SBS 8 뉴스>", "<SBS 8 뉴스>"),
        ("영화 <Parasite>", "영화 <Parasite>"),
        ("<Big> &lt;Big&gt; <A Team> <unknown/> <b onclick>", "<Big> <Big> <A Team> <unknown/> <b onclick>"),
        ("<P CLASS='x'>One<BR/>two<br />three</P><a href='x'>four</a>&lt;h1&gt;5", "One two three four 5"),
        ("Rock&region", "Rock&region"),
        ("#23&#24", "#23&#24"),
        ("Q&notin A&not;B &copy 2024 Caf&eacute", "Q&notin A¬B &copy 2024 Caf&eacute"),
        ("Tom &amp Jerry", "Tom & Jerry"),
        ("&notit; &#60;i&#62;x&#x3c;/i> &#8211; &#150;", "&notit; x – –"),
        ("&am\u200dp; &am&#173;p; &am\u037e", "& & &am;"),
        ("<b<b<b>>>x", "x"),
        ("\u200d\u200da\u200c\u200c é\u200d\u200d", "a é"),
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


@settings(deadline=None)
@given(st.lists(st.text() | st.sampled_from(["a", "é", " ", "Ã¼", "&amp;", "\\n", "\ufffd", "e\u0301", "<b>x", "a|", "|", "& co", "\u200b"]), max_size=5))
def test_what_is_taken_as_clean_together_is_clean_one_by_one(texts: list[str]) -> None:
    if all_clean(pa.array(texts, pa.string())):
        assert all(text and clean(text) == text for text in texts)


@settings(deadline=None)
@given(st.lists(st.text() | st.sampled_from(["a", "é", " ", "Ã¼", "&amp;", "\\n", "\ufffd", "e\u0301", "<b>x", "a ", "a  b", "", "& co", "\u200b", "\ud800"]), max_size=60))
def test_many_texts_are_cleaned_as_one_by_one(texts: list[str]) -> None:
    assert clean_all(texts) == [clean(text) for text in texts]


def test_plain_texts_are_taken_as_clean_together() -> None:
    assert all_clean(pa.array(["Tatort", None, "Größe", "Law & Order", "20/20", "Привет"]))
    assert all_clean(pa.array(["<b>", "Tatort", "Größe"])[1:]) and all_clean(pa.array([None, None], pa.string())) and all_clean(pa.array([], pa.string()))
    for dirty in ("CapÃ­tulo", "a\u200b", "&amp;", " a", "a ", "", "a  b", "a\\nb", "<b>", "e\u0301", "\ufffd"):
        assert not all_clean(pa.array(["Tatort", dirty, None, "Größe"]))


@given(st.text())
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)
