import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.text.clean import clean


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
    assert clean(found) == found
